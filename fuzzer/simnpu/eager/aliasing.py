"""Device tensors seen as CPU tensors on the same memory, and CPU results put on a device with the same strides."""

from __future__ import annotations

import ctypes

import torch

_BASES: dict[tuple[int, int, torch.dtype], torch.Tensor] = {}
"""A CPU tensor over the whole of each recently seen storage. It owns nothing, so an entry may outlive the storage:
it is only ever found again by a live storage with the same address and size."""
_BASES_LIMIT = 4096

_memmove = ctypes.memmove


def _base(address: int, nbytes: int, dtype: torch.dtype) -> torch.Tensor:
    """The CPU tensor of `dtype` over `nbytes` of device memory, from the cache or new."""
    key = (address, nbytes, dtype)
    base = _BASES.get(key)
    if base is None:
        if len(_BASES) >= _BASES_LIMIT:
            _BASES.clear()
        with torch.inference_mode(False):
            storage = torch._C._construct_storage_from_data_pointer(address, torch.device("cpu"), nbytes)
            base = torch.empty(0, dtype=dtype).set_(storage, 0, (nbytes // dtype.itemsize,), (1,))
        _BASES[key] = base
    return base


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor with the memory, sizes, strides, offset and pending conjugation or negation of `tensor`.

    Gives `tensor` itself if it is no device tensor. Raises NotImplementedError for layouts other than strided.
    """
    if tensor.device.type != "npu":
        return tensor
    if tensor.layout is not torch.strided:
        raise NotImplementedError(f"simnpu: tensors of layout {tensor.layout} are not supported")
    storage = tensor.untyped_storage()
    nbytes = storage.nbytes()
    address = storage.data_ptr()
    if nbytes == 0 or address == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    seen = _base(address, nbytes, tensor.dtype).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_conj():
        seen = torch._conj(seen)
    if tensor.is_neg():
        seen = torch._neg_view(seen)
    return seen


def to_device(result: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A new tensor on `device` with the contents, sizes and strides (expanded ones too) of the CPU tensor `result`."""
    if result.layout is not torch.strided:
        raise NotImplementedError(f"simnpu: results of layout {result.layout} are not supported")
    if result.is_conj() or result.is_neg():
        result = result.resolve_conj().resolve_neg()
    moved = torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device=device)
    nbytes = moved.untyped_storage().nbytes()
    if nbytes and result.numel():
        _memmove(moved.data_ptr(), result.data_ptr(), nbytes)
    return moved
