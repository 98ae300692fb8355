"""Advanced indexing: index tensors on one or several dims, masks, gather, scatter, index_put, embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fuzzer.ops import slots
from fuzzer.ops.pointwise import EXACT
from fuzzer.ops.reductions import one_dim
from fuzzer.ops.rules import (
    axis,
    boolean,
    broadcast,
    floating,
    high_of,
    like,
    make,
    size_at,
    tensor,
)
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Slot, Trait, Types
from fuzzer.program import DType, TensorType, Type

Infer = Callable[[Types, Params], Type]


def index_of(value: Type, size: int) -> TensorType:
    """The value, which must be an int64 tensor of positions below the size."""
    i = tensor(value)
    if i.dtype is not DType.INT64 or i.high is None or i.high > size:
        raise IllTyped(f"positions below {i.high}, in a dim of size {size}")
    return i


def _at(*dims: int) -> Infer:
    """`x[i]`, `x[:, i]`, `x[i, :, j]`: the dims that are indexed, in order."""

    def infer(args: Types, params: Params) -> Type:
        x = tensor(args[0])
        if x.rank <= max(dims):
            raise IllTyped(f"indexes dim {max(dims)} of rank {x.rank}")
        found = [index_of(arg, x.shape[dim]) for arg, dim in zip(args[1:], dims, strict=True)]
        shape = broadcast(*(i.shape for i in found))
        rest = [size for dim, size in enumerate(x.shape) if dim not in dims]
        # Neighbouring index tensors leave their dims in place; others move them to the front.
        where = dims[0] if dims == tuple(range(dims[0], dims[-1] + 1)) else 0
        return like(x, (*rest[:where], *shape, *rest[where:]))

    return infer


def _index_rows(args: Types, params: Params) -> Type:
    x, size = tensor(args[0]), params.integer("size")
    if x.rank < 2 or size != x.shape[0]:
        raise IllTyped("one position a row")
    i = index_of(args[1], x.shape[1])
    if i.shape != (size,):
        raise IllTyped("one position a row")
    return like(x, (size, *x.shape[2:]))


def _draw_rows(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    return Params.of(size=shape[0]) if len(shape) > 1 else None


def _mask_sum(args: Types, params: Params) -> Type:
    x, mask = tensor(args[0]), boolean(args[1])
    if not mask.rank or x.shape[: mask.rank] != mask.shape:
        raise IllTyped("the mask covers the first dims")
    if x.dtype.is_floating:
        return make(x.shape[mask.rank :], x.dtype)
    high = high_of(x)
    return make(x.shape[mask.rank :], DType.INT64, None if high is None else (high - 1) * mask.numel + 1)


def _gather(args: Types, params: Params) -> Type:
    x, i = tensor(args[0]), tensor(args[1])
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or i.rank != x.rank:
        raise IllTyped("gather's index has the tensor's rank")
    index_of(i, x.shape[dim])
    if any(i.shape[d] > x.shape[d] for d in range(x.rank) if d != dim):
        raise IllTyped("gather's index is larger than the tensor elsewhere")
    return like(x, i.shape)


def _take_along(args: Types, params: Params) -> Type:
    x, i = tensor(args[0]), tensor(args[1])
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or i.rank != x.rank:
        raise IllTyped("take_along_dim's index has the tensor's rank")
    index_of(i, x.shape[dim])
    others = broadcast(x.shape[:dim] + x.shape[dim + 1 :], i.shape[:dim] + i.shape[dim + 1 :])
    return like(x, (*others[:dim], i.shape[dim], *others[dim:]))


def _index_select(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    dim = axis(params.integer("dim"), x.rank)
    i = index_of(args[1], size_at(x, dim))
    if i.rank != 1 or not x.shape:
        raise IllTyped("index_select takes a one-dimensional index")
    return like(x, (*x.shape[:dim], *i.shape, *x.shape[dim + 1 :]))


def _take(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    return like(x, index_of(args[1], x.numel).shape)


def _embedding(args: Types, params: Params) -> Type:
    table = floating(args[0])
    if table.rank != 2:
        raise IllTyped("an embedding table has two dims")
    return like(table, (*index_of(args[1], table.shape[0]).shape, table.shape[1]))


def _one_hot(args: Types, params: Params) -> Type:
    classes = params.integer("classes")
    return make((*index_of(args[0], classes).shape, classes), DType.INT64, 2)


def _draw_one_hot(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if t.high is None or t.high > 64 or t.numel * t.high > 20_000:
        return None
    return Params.of(classes=t.high + draw.choice((0, 1)))


def _mask_total(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * prod(tensor(types[1]).shape)


def _values(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0]


def index_op(
    name: str,
    template: str,
    takes: tuple[Slot, ...],
    infer: Infer,
    weight: int,
    draw: Callable[[Draw, Type], Params | None] | None = None,
    traits: frozenset[Trait] = EXACT,
    grows: Grows = _values,
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.INDEXING,
        template=template,
        slots=takes,
        infer=infer,
        traits=traits,
        grows=grows,
        weight=weight,
        **({} if draw is None else {"draw": draw}),
    )


X1, _X2, _X3 = slots.anything(rank=1), slots.anything(rank=2), slots.anything(rank=3)
N1 = slots.numeric(rank=1)
I0, _I1, _I2 = (slots.index("i", slots.at(dim)) for dim in range(3))
LINE = slots.index("i", slots.by_param, (1, 1))
LIKE = slots.index_like("i", slots.by_param)
_TABLE = Slot(
    name="table",
    fits=lambda value, seen, params: isinstance(value, TensorType) and value.dtype.is_floating and value.rank == 2,
)


OPS: Registry = (
    index_op("index_0", "{x}[{i}]", (X1, I0), _at(0), 14),
    index_op("index_1", "{x}[:, {i}]", (_X2, _I1), _at(1), 6),
    index_op("index_2", "{x}[:, :, {i}]", (_X3, _I2), _at(2), 3),
    index_op("index_01", "{x}[{i}, {j}]", (_X2, I0, slots.index_beside("j", slots.at(1))), _at(0, 1), 5),
    index_op("index_12", "{x}[:, {i}, {j}]", (_X3, _I1, slots.index_beside("j", slots.at(2))), _at(1, 2), 3),
    index_op("index_02", "{x}[{i}, :, {j}]", (_X3, I0, slots.index_beside("j", slots.at(2))), _at(0, 2), 3),
    index_op(
        "index_rows",
        "{x}[torch.arange({size}, device={x}.device), {i}]",
        (_X2, slots.row_index("i")),
        _index_rows,
        2,
        _draw_rows,
    ),
    index_op("mask_sum", "{x}[{mask}].sum(0)", (X1, slots.leading_mask()), _mask_sum, 3, grows=_mask_total),
    index_op("gather", "{x}.gather({dim}, {i})", (X1, LIKE), _gather, 6, one_dim),
    index_op("take_along_dim", "torch.take_along_dim({x}, {i}, {dim})", (X1, LIKE), _take_along, 3, one_dim),
    index_op("index_select", "{x}.index_select({dim}, {i})", (X1, LINE), _index_select, 6, one_dim),
    index_op("take", "{x}.take({i})", (slots.anything(), slots.flat_index("i")), _take, 2),
    index_op("embedding", "torch.nn.functional.embedding({i}, {table})", (_TABLE, I0), _embedding, 6),
    index_op(
        "one_hot",
        "torch.nn.functional.one_hot({x}, {classes})",
        (slots.integers(),),
        _one_hot,
        2,
        _draw_one_hot,
        grows=lambda sizes, types, params: 1.0,
    ),
)
