"""Eager operators that need more than their CPU kernel: copies between devices, and mixed-precision products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from fuzzer.simnpu.eager.aliasing import alias, to_device


def copy_(destination: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """`copy_` in every direction between host and devices; always blocking."""
    alias(destination).copy_(alias(source))
    return destination


def to_copy(
    tensor: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """`_to_copy`: a new tensor in another dtype or on another device, with the strides that the CPU gives it."""
    target = tensor.device if device is None else torch.device(device)
    copied: torch.Tensor = torch.ops.aten._to_copy(
        alias(tensor), dtype=dtype, layout=layout, memory_format=memory_format
    )
    if target.type != "npu":
        return copied.pin_memory() if pin_memory else copied
    return to_device(copied, target)


def local_scalar_dense(tensor: torch.Tensor) -> Any:
    """`.item()` of a one-element device tensor."""
    return alias(tensor).item()


def copy_from_and_resize(source: torch.Tensor, destination: torch.Tensor) -> torch.Tensor:
    """Gives `destination` the size of `source`, then its contents."""
    destination.resize_(source.size())
    return copy_(destination, source)


def mm_dtype(left: torch.Tensor, right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`mm` and `bmm` that accumulate and answer in `dtype`."""
    return to_device(alias(left).to(dtype) @ alias(right).to(dtype), left.device)


KERNELS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "aten::_copy_from_and_resize": copy_from_and_resize,
        "aten::_local_scalar_dense": local_scalar_dense,
        "aten::_to_copy": to_copy,
        "aten::bmm.dtype": mm_dtype,
        "aten::copy_": copy_,
        "aten::mm.dtype": mm_dtype,
    }
)
"""Hand-written kernels by dispatcher name."""
