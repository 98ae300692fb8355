"""What aten operators do to floating values: move them, round them, or add up many."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

MOVES = frozenset(
    """
    _assert_async _local_scalar_dense _to_copy _unsafe_index _unsafe_view abs amax amin arange argmax argmin cat
    ceil clamp clamp_max clamp_min clone constant_pad_nd copy detach diagonal_backward embedding empty empty_like
    empty_strided fill flip floor full full_like gather hardtanh hardtanh_backward index index_fill index_put
    index_select lift_fresh lift_fresh_copy masked_fill masked_scatter masked_select max maximum min minimum
    nan_to_num neg new_empty new_empty_strided new_full new_ones new_zeros ones ones_like relu repeat roll round
    scalar_tensor scatter select_backward select_scatter sgn sign slice_backward slice_scatter sort stack threshold
    threshold_backward topk tril triu trunc unfold_backward value_selecting_reduction_backward where zero zeros
    zeros_like
    """.split()  # noqa: SIM905  # one name a line would fill two pages
)
"""Operators that move or choose values and never round."""

ARITHMETIC = frozenset(("add", "mul", "rsub", "square", "sub"))
"""Operators whose result is a small integer, and exact, if their operands are and it is small."""

SUMS = frozenset(
    """
    addbmm addcmul addmm baddbmm bmm cumsum dot embedding_dense_backward index_add index_put mm mv scatter_add sum
    _index_put_impl _unsafe_index_put
    """.split()  # noqa: SIM905  # as above
)
"""Operators that add up many values. `index_put` does when it accumulates."""

UNINITIALISED = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"))
"""Operators whose result has no values yet."""


def base_name(func: Any) -> str:
    """`add` for aten.add.Tensor and for aten.add_.Tensor."""
    return str(func.overloadpacket.__name__).removesuffix("_")


def is_view(func: Any) -> bool:
    """Whether an operator only looks at its operand's memory."""
    returned = func._schema.returns
    return bool(returned) and all(ret.alias_info is not None and not ret.alias_info.is_write for ret in returned)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """Every tensor in nested tuples, lists and dicts."""
    return [value for value in pytree.tree_leaves(tree) if isinstance(value, torch.Tensor)]


def floating_in(tree: Any) -> list[torch.Tensor]:
    """Every floating tensor in nested tuples, lists and dicts."""
    return [tensor for tensor in tensors_in(tree) if tensor.dtype.is_floating_point]
