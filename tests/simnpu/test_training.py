"""Modules, attention and optimizers train on the simulated device as they do on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("npu")]


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conv": (lambda: nn.Conv2d(3, 4, 3, dilation=2), (2, 3, 8, 8)),
    "conv-transpose": (lambda: nn.ConvTranspose2d(3, 4, 3), (2, 3, 8, 8)),
    "batch-norm": (lambda: nn.BatchNorm2d(3), (2, 3, 8, 8)),
    "layer-norm": (lambda: nn.LayerNorm(8), (2, 3, 8)),
    "linear": (lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.0)), (2, 8)),
    "lstm": (lambda: nn.LSTM(4, 5, 2), (3, 2, 4)),
    "gru": (lambda: nn.GRU(4, 5), (3, 2, 4)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (2, 3, 8)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_a_module_trains_on_the_device_as_on_the_cpu(name: str) -> None:
    make, shape = MODULES[name]
    torch.manual_seed(0)
    on_cpu, on_npu = make(), make()
    on_npu.load_state_dict(on_cpu.state_dict())
    on_npu.to("npu")
    x = torch.randn(shape)
    for module, value in ((on_cpu, x), (on_npu, x.to("npu"))):
        result = module(value)
        (result[0] if isinstance(result, tuple) else result).square().sum().backward()
    for left, right in zip(on_npu.parameters(), on_cpu.parameters(), strict=True):
        assert left.grad is not None
        torch.testing.assert_close(left.grad.cpu(), right.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["plain", "causal", "mask", "dropout", "scale"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_attention_and_its_gradients_are_those_of_the_cpu(mode: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(2, 3, 4, 8) for _ in range(3)]
    mask = torch.ones(4, 4).tril().bool()
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "causal": {"is_causal": True},
        "mask": {"attn_mask": mask},
        "dropout": {"dropout_p": 1e-7},
        "scale": {"scale": 0.3},
    }
    results = []
    for device in ("cpu", "npu"):
        moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in options[mode].items()}
        leaves = [x.to(device, dtype if device == "npu" else torch.float32).requires_grad_() for x in tensors]
        attend: Any = F.scaled_dot_product_attention
        attended = attend(*leaves, **moved)
        results.append([attended, *torch.autograd.grad(attended.square().sum(), leaves)])
    tolerance = 2e-5 if dtype == torch.float32 else 2e-2
    for wanted, given in zip(*results, strict=True):
        torch.testing.assert_close(given.cpu().float(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("variant", ["loop", "foreach", "fused"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_an_optimizer_takes_the_same_steps_as_on_the_cpu(name: str, variant: str) -> None:
    options = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[variant]
    torch.manual_seed(0)
    weights = torch.randn(5, 3)
    ends = []
    for device in ("cpu", "npu"):
        parameter = weights.to(device, copy=True).requires_grad_()
        optimizer = getattr(torch.optim, name)([parameter], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            torch.autograd.backward(parameter.square().sum())
            optimizer.step()
        ends.append(parameter.detach().cpu())
    torch.testing.assert_close(*ends, rtol=1e-6, atol=1e-6)
