"""Gradients of operators for which torch_npu brings formulas of its own: torch's CPU autograd computes them instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F

from fuzzer.simnpu.eager.aliasing import alias, to_device

_AUTOGRAD_KEYS = ("AutogradCPU", "AutogradOther", "ADInplaceOrView")

Reduction = {0: "none", 1: "mean", 2: "sum"}


@contextmanager
def _cpu_autograd() -> Iterator[None]:
    """Records gradients of CPU tensors, although a kernel runs below autograd."""
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in _AUTOGRAD_KEYS:
        excluded = excluded.remove(getattr(torch._C.DispatchKey, key))
    included = torch._C._dispatch_tls_local_include_set()
    with torch._C._ForceDispatchKeyGuard(included, excluded), torch.enable_grad():
        yield


def gradients(
    forward: Callable[..., torch.Tensor],
    inputs: Sequence[torch.Tensor],
    gradient: torch.Tensor,
    wanted: Sequence[bool] | None = None,
) -> list[torch.Tensor | None]:
    """Gradients of `forward(*inputs)` with respect to each wanted input, computed on the CPU, put on the device.

    `inputs` and `gradient` are device tensors; `forward` gets CPU aliases of the inputs.
    """
    wanted = [True] * len(inputs) if wanted is None else list(wanted)
    with _cpu_autograd():
        leaves = [alias(value).detach() for value in inputs]
        for leaf, want in zip(leaves, wanted, strict=True):
            leaf.requires_grad_(want)
        result = forward(*leaves)
        asked = [leaf for leaf, want in zip(leaves, wanted, strict=True) if want]
        found = iter(torch.autograd.grad(result, asked, alias(gradient).expand(result.shape)) if asked else ())
    return [to_device(next(found), inputs[0].device) if want else None for want in wanted]


def _one(forward: Callable[..., torch.Tensor], value: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    found = gradients(forward, [value], gradient)[0]
    assert found is not None
    return found


def matmul_backward(grad: torch.Tensor, left: torch.Tensor, right: torch.Tensor, mask: Sequence[bool]) -> Any:
    """Both gradients of `torch.matmul`, None where the mask says no."""
    return tuple(gradients(torch.matmul, [left, right], grad, mask))


def repeat_interleave_backward(
    grad: torch.Tensor, value: torch.Tensor, repeats: int | torch.Tensor, dim: int | None = None
) -> torch.Tensor:
    """Gradient of `repeat_interleave`, for a number and for a tensor of repeats."""
    counts = alias(repeats) if isinstance(repeats, torch.Tensor) else repeats
    return _one(lambda x: torch.repeat_interleave(x, counts, dim), value, grad)


def l1_loss_backward(grad: torch.Tensor, value: torch.Tensor, target: torch.Tensor, reduction: int) -> torch.Tensor:
    """Gradient of `l1_loss` with respect to its input."""
    return _one(lambda x: F.l1_loss(x, alias(target), reduction=Reduction[reduction]), value, grad)


def kl_div_backward(
    grad: torch.Tensor, value: torch.Tensor, target: torch.Tensor, reduction: int = 1, *, log_target: bool = False
) -> torch.Tensor:
    """Gradient of `kl_div` with respect to its input."""
    goal = alias(target)
    return _one(lambda x: F.kl_div(x, goal, reduction=Reduction[reduction], log_target=log_target), value, grad)


def kl_div_target_backward(
    grad: torch.Tensor, value: torch.Tensor, target: torch.Tensor, reduction: int = 1, *, log_target: bool = False
) -> torch.Tensor:
    """Gradient of `kl_div` with respect to its target."""
    seen = alias(value)
    return _one(lambda x: F.kl_div(seen, x, reduction=Reduction[reduction], log_target=log_target), target, grad)


def bce_with_logits_backward(
    grad: torch.Tensor,
    value: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    pos_weight: torch.Tensor | None,
    reduction: int,
) -> torch.Tensor:
    """Gradient of `binary_cross_entropy_with_logits` with respect to its input."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(
            x,
            alias(target),
            weight=None if weight is None else alias(weight),
            pos_weight=None if pos_weight is None else alias(pos_weight),
            reduction=Reduction[reduction],
        )

    return _one(forward, value, grad)


def renorm_backward(grad: torch.Tensor, value: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """Gradient of `renorm`."""
    return _one(lambda x: torch.renorm(x, p, dim, maxnorm), value, grad)


def gather_backward(
    grad: torch.Tensor, size: Sequence[int], dim: int, index: torch.Tensor, sparse_grad: bool
) -> torch.Tensor:
    """Gradient of `gather`: the gradient added up where it was read."""
    if sparse_grad:
        raise NotImplementedError("simnpu: gather with sparse_grad=True is not supported")
    zeros = torch.zeros(tuple(size), dtype=grad.dtype)
    return to_device(zeros.scatter_add_(dim, alias(index), alias(grad)), grad.device)


def fft_r2c_backward(
    grad: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool, last_dim_size: int
) -> torch.Tensor:
    """Gradient of the real-to-complex Fourier transform."""
    real = grad.real.dtype
    shape = list(grad.shape)
    shape[dim[-1]] = last_dim_size
    blank = torch.zeros(shape, dtype=real, device=grad.device)
    return _one(lambda x: torch._fft_r2c(x, list(dim), normalization, onesided), blank, grad)


def fft_c2r_backward(grad: torch.Tensor, dim: Sequence[int], normalization: int) -> torch.Tensor:
    """Gradient of the complex-to-real Fourier transform."""
    size = grad.shape[dim[-1]]
    shape = list(grad.shape)
    shape[dim[-1]] = size // 2 + 1
    blank = torch.zeros(shape, dtype=torch.promote_types(grad.dtype, torch.complex32), device=grad.device)
    return _one(lambda x: torch._fft_c2r(x, list(dim), normalization, size), blank, grad)


def stft_backward(
    grad: torch.Tensor,
    value: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> torch.Tensor:
    """Gradient of the short-time Fourier transform with respect to its signal."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.aten.stft(
            x,
            n_fft,
            hop_length,
            win_length,
            None if window is None else alias(window),
            normalized,
            onesided,
            return_complex,
        )
        return result

    return _one(forward, value, grad)


KERNELS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "aten::matmul_backward": matmul_backward,
        "npu::repeat_interleave_backward_int": repeat_interleave_backward,
        "npu::repeat_interleave_backward_tensor": repeat_interleave_backward,
        "npu::l1_loss_backward": l1_loss_backward,
        "npu::kl_div_backward": kl_div_backward,
        "npu::kl_div_target_backward": kl_div_target_backward,
        "npu::npu_binary_cross_entropy_with_logits_backward": bce_with_logits_backward,
        "npu::npu_renorm_backward": renorm_backward,
        "npu::npu_gather_backward": gather_backward,
        "npu::stft_backward": stft_backward,
        "npu::fft_r2c_backward": fft_r2c_backward,
        "npu::fft_c2r_backward": fft_c2r_backward,
    }
)
"""Gradient kernels by dispatcher name."""
