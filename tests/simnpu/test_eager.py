"""Eager mode on the simulated device gives what eager mode on the CPU gives: values, strides, gradients, identity."""

from __future__ import annotations

import ctypes
import io
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from fuzzer.simnpu import SimOptions, preload

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("npu")]

# fmt: off
OPERATORS = (
    "add", "sub", "mul", "div", "true_divide", "pow", "fmod", "remainder", "maximum", "minimum", "where",
    "masked_fill", "clamp", "sigmoid", "tanh", "exp", "log1p", "erf", "rsqrt", "sign", "round", "floor",
    "isnan", "logical_and", "eq", "bitwise_and", "sum", "mean", "prod", "amax", "amin", "argmax", "argmin",
    "any", "all", "var", "std", "logsumexp", "cumsum", "cumprod", "sort", "topk", "softmax", "log_softmax",
    "max", "median", "norm", "nn.functional.layer_norm", "nn.functional.group_norm",
    "nn.functional.batch_norm", "nn.functional.embedding", "nn.functional.conv2d", "nn.functional.avg_pool2d",
    "nn.functional.gelu", "nn.functional.relu", "nn.functional.cross_entropy", "nn.functional.interpolate",
    "matmul", "bmm", "addmm", "einsum", "permute", "transpose", "reshape", "expand", "flip", "roll", "cat",
    "stack", "split", "index_select", "gather", "scatter", "scatter_add", "index_put", "index_add",
    "index_fill", "masked_select", "masked_scatter", "take_along_dim", "tril", "diagonal", "unfold",
    "repeat_interleave", "unique", "nonzero", "__getitem__", "squeeze", "unsqueeze", "quantile", "fft.ihfft",
    "fft.rfft", "stft", "linalg.inv", "nanmean", "nan_to_num", "lerp",
)
# fmt: on
"""Names of torch's own sample generators; some have variants."""

SAMPLES = 6


@cache
def _op_infos() -> dict[str, list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    found: dict[str, list[Any]] = {}
    for info in op_db:
        found.setdefault(info.name, []).append(info)
    return found


def _to_npu(value: Any) -> Any:
    """The value with its tensors on the device, as leaves of their own that require a gradient where these do."""

    def move(leaf: Any) -> Any:
        return leaf.detach().to("npu").requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(move, value)


def _assert_same(device: Any, cpu: Any) -> None:
    given, wanted = tree_leaves(device), tree_leaves(cpu)
    assert len(given) == len(wanted)
    for left, right in zip(given, wanted, strict=True):
        if not isinstance(right, torch.Tensor):
            assert left == right
            continue
        assert left.device.type == "npu"
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        if right.numel() > 0:
            assert left.stride() == right.stride()
        torch.testing.assert_close(left.detach().cpu(), right.detach(), rtol=0, atol=0, equal_nan=True)


def _gradients(outputs: Any, inputs: Any) -> list[torch.Tensor | None]:
    roots = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    leaves = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not roots or not leaves:
        return []
    return list(torch.autograd.grad(roots, leaves, [torch.full_like(root, 0.5) for root in roots], allow_unused=True))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.filterwarnings("ignore")
def test_values_strides_and_gradients_are_those_of_the_cpu(name: str) -> None:
    compared = 0
    for info, dtype in product(_op_infos()[name], (torch.float32, torch.int64)):
        if not info.supports_dtype(dtype, "cpu"):
            continue
        differentiable = dtype.is_floating_point and info.supports_autograd
        for sample in list(info.sample_inputs("cpu", dtype, requires_grad=differentiable))[:SAMPLES]:
            inputs = (sample.input, sample.args, sample.kwargs)
            moved = _to_npu(inputs)
            wanted = info(inputs[0], *inputs[1], **inputs[2])
            given = info(moved[0], *moved[1], **moved[2])
            _assert_same(given, wanted)
            if differentiable:
                _assert_same(_gradients(given, moved), _gradients(wanted, inputs))
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", ["add", "mul", "amin", "amax", "cumsum", "cat", "bmm", "sort", "where", "clamp"])
@pytest.mark.parametrize("kind", ["empty", "right", "permuted"])
@pytest.mark.filterwarnings("ignore")
def test_out_arguments_get_the_result_the_size_and_the_strides_that_the_cpu_gives_them(name: str, kind: str) -> None:
    for info in _op_infos()[name]:
        for sample in list(info.sample_inputs("cpu", torch.float32))[:SAMPLES]:
            inputs = (sample.input, sample.args, sample.kwargs)
            moved = _to_npu(inputs)
            wanted = info(inputs[0], *inputs[1], **inputs[2])
            outs: dict[str, Any] = {}
            for device in ("cpu", "npu"):

                def blank(result: torch.Tensor, device: str = device) -> torch.Tensor:
                    if kind == "empty":
                        return torch.empty(0, dtype=result.dtype, device=device)
                    if kind == "right":
                        return torch.empty_like(result, device=device)
                    reverse = tuple(range(result.dim()))[::-1]
                    return torch.empty(result.shape[::-1], dtype=result.dtype, device=device).permute(reverse)

                outs[device] = tree_map(blank, tuple(wanted) if isinstance(wanted, tuple) else wanted)
            info(inputs[0], *inputs[1], **inputs[2], out=outs["cpu"])
            info(moved[0], *moved[1], **moved[2], out=outs["npu"])
            _assert_same(outs["npu"], outs["cpu"])


@pytest.mark.filterwarnings("ignore")
def test_an_out_argument_that_is_too_small_grows() -> None:
    out = torch.empty(2, device="npu")
    result = torch.add(torch.ones(3, 4).to("npu"), 1, out=out)
    assert result is out
    assert out.shape == (3, 4)
    assert out.cpu().eq(2).all()


def test_an_in_place_operator_writes_the_memory_of_its_argument_and_of_every_view() -> None:
    base = torch.zeros(4, 5, device="npu")
    address, column = base.data_ptr(), base[:, 2]
    column.add_(3)
    base.t()[0].copy_(torch.arange(4))
    base[1:3].mul_(2)
    assert base.data_ptr() == address
    expected = torch.zeros(4, 5)
    expected[:, 2] += 3
    expected[:, 0] = torch.arange(4)
    expected[1:3] *= 2
    assert torch.equal(base.cpu(), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.unsqueeze_(0),
        lambda x: x.t_(),
        lambda x: x.transpose_(0, 1).squeeze_(),
        lambda x: x.resize_(2, 3),
        lambda x: x.fill_diagonal_(7),
        lambda x: x.index_put_((torch.tensor([0, 2]),), torch.tensor(9.0).to(x.device)),
        lambda x: x.masked_fill_(x > 3, -1.0),
        lambda x: x.scatter_add_(0, torch.zeros(1, 4, dtype=torch.int64).to(x.device), torch.ones(1, 4).to(x.device)),
    ],
)
def test_in_place_operators_that_change_shape_or_scatter_agree_with_the_cpu(
    change: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    on_cpu = torch.arange(12.0).reshape(3, 4)
    on_npu = on_cpu.to("npu")
    assert change(on_npu) is on_npu
    change(on_cpu)
    _assert_same(on_npu, on_cpu)


def test_views_share_memory_and_expanded_results_keep_stride_zero() -> None:
    x = torch.arange(6.0, device="npu").reshape(2, 3)
    for view in (x.t(), x[1], x.view(6), x.unsqueeze(1), x.unfold(1, 2, 1), x.expand(4, 2, 3), x.detach()):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.t().contiguous().stride() == (2, 1)
    assert x.contiguous() is x
    assert (x.sum() * torch.ones((), device="npu")).expand(3).clone().stride() == torch.ones(()).expand(
        3
    ).clone().stride()


def test_copies_go_in_every_direction_and_convert() -> None:
    host = torch.randn(3, 4)
    device = host.to("npu")
    assert torch.equal(device.cpu(), host)
    assert torch.equal(device.to("npu", torch.float64).cpu(), host.double())
    assert torch.equal(torch.empty(4, 3, device="npu").t().copy_(host).cpu(), host)
    assert torch.equal(torch.empty(4, 3).t().copy_(device), host)
    assert torch.equal(torch.empty(3, 4, device="npu").copy_(device[:1]).cpu(), host[:1].expand(3, 4))
    assert torch.equal(
        torch.randn(3, dtype=torch.complex64, device="npu").conj().cpu().imag.isnan(), torch.zeros(3) > 0
    )
    z = torch.tensor([1 + 2j]).to("npu")
    assert z.conj().cpu().item() == 1 - 2j
    assert z.conj().imag.cpu().item() == -2


def test_scalars_and_numbers_join_device_tensors_but_host_tensors_do_not() -> None:
    x = torch.arange(3, device="npu")
    assert (x + 1 + torch.tensor(1)).tolist() == [2, 3, 4]
    assert x[torch.tensor([2, 0])].tolist() == [2, 0]
    with pytest.raises(RuntimeError, match=r"on the same device.*npu:0 and cpu.*calling add"):
        x + torch.arange(3)


def test_an_operator_with_no_host_kernel_says_so_and_names_itself() -> None:
    import torch_npu

    with pytest.raises(NotImplementedError, match=r"npu::npu_swiglu has no host implementation"):
        torch_npu.npu_swiglu(torch.ones(2, 4, device="npu"))
    with pytest.raises(NotImplementedError, match=r"layout torch\.sparse_coo"):
        torch.eye(2, device="npu").to_sparse()


def test_a_tensor_survives_saving_and_deep_copy() -> None:
    import copy

    x = torch.randn(3, device="npu")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch_npu warns that torch's TypedStorage is old
        torch.save(x, file)
        file.seek(0)
        again = torch.load(file)
        twin = copy.deepcopy(x)
    assert (again.device.type, twin.device.type) == ("npu", "npu")
    assert torch.equal(again.cpu(), x.cpu())
    assert torch.equal(twin.cpu(), x.cpu())


@pytest.mark.parametrize(
    ("make", "stride"),
    [
        (torch.empty_like, (1, 30, 6)),
        (lambda x: torch.empty_like(x, dtype=torch.int64), (1, 30, 6)),
        (lambda x: torch.empty_like(x, memory_format=torch.contiguous_format), (20, 5, 1)),
        (lambda x: x.new_empty((3, 4)), (4, 1)),
        (lambda x: x.new_empty_strided((3, 4), (1, 3)), (1, 3)),
        (lambda x: torch.empty((3, 4), device=x.device), (4, 1)),
        (lambda x: torch.empty_strided((3, 4), (1, 3), device=x.device), (1, 3)),
        (lambda x: x.new_empty(0).resize_(3, 4), (4, 1)),
    ],
)
@pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format")
def test_memory_that_nobody_wrote_is_full_of_the_poison_byte_inside_an_allocation(
    make: Callable[[torch.Tensor], torch.Tensor], stride: tuple[int, ...]
) -> None:
    fresh = make(torch.ones(4, 5, 6, device="npu").permute(2, 0, 1))
    held = fresh.untyped_storage()
    assert preload.find_allocation(held.data_ptr()) == (held.data_ptr(), held.nbytes())
    assert ctypes.string_at(held.data_ptr(), held.nbytes()) == bytes([SimOptions().poison]) * held.nbytes()
    assert fresh.stride() == stride
