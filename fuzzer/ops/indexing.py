"""Advanced indexing: index tensors on one or several dims, masks, gather, scatter, index_put, embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fuzzer.ops import slots
from fuzzer.ops.masking import draw_fill
from fuzzer.ops.pointwise import EXACT, bounded_write
from fuzzer.ops.reductions import one_dim
from fuzzer.ops.rules import (
    axis,
    boolean,
    broadcast,
    broadcasts_to,
    fits_dtype,
    floating,
    high_of,
    like,
    make,
    numeric,
    size_at,
    tensor,
    widest,
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


def _rows_of(seen: Types, params: Params) -> tuple[int, ...] | None:
    x, i = tensor(seen[0]), tensor(seen[1])
    return (*i.shape, *x.shape[1:])


def _along_dim(seen: Types, params: Params) -> tuple[int, ...] | None:
    x, i = tensor(seen[0]), tensor(seen[1])
    dim = axis(params.integer("dim"), x.rank)
    return (*x.shape[:dim], *i.shape, *x.shape[dim + 1 :])


def _index_shape(seen: Types, params: Params) -> tuple[int, ...] | None:
    return tensor(seen[1]).shape


def _puts(x: TensorType, args: Types) -> None:
    i, y = index_of(args[1], x.shape[0] if x.shape else 0), tensor(args[2])
    if y.dtype is not x.dtype or not broadcasts_to(y.shape, (*i.shape, *x.shape[1:])):
        raise IllTyped("index_put's values do not match")


def _index_put(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    _puts(x, args)
    return make(x.shape, x.dtype, widest(x, args[2]))


def _index_put_in_place(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    _puts(x, args)
    return bounded_write(x, high_of(args[2]))


def _index_accumulate(args: Types, params: Params) -> Type:
    x = numeric(args[0])
    _puts(x, args)
    return make(x.shape, x.dtype)


def _index_add(args: Types, params: Params) -> Type:
    x = numeric(args[0])
    _along(args, params)
    return make(x.shape, x.dtype)


def _along(args: Types, params: Params) -> None:
    x, y = tensor(args[0]), tensor(args[2])
    dim = axis(params.integer("dim"), x.rank)
    i = index_of(args[1], size_at(x, dim))
    if not x.shape or i.rank != 1 or y.dtype is not x.dtype:
        raise IllTyped("index_add and index_copy take a one-dimensional index and one dtype")
    if y.shape != (*x.shape[:dim], *i.shape, *x.shape[dim + 1 :]):
        raise IllTyped("the source does not match")


def _index_copy(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    _along(args, params)
    return make(x.shape, x.dtype, widest(x, args[2]))


def _index_fill(args: Types, params: Params) -> Type:
    x, k = tensor(args[0]), params.number("k")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or index_of(args[1], x.shape[dim]).rank != 1:
        raise IllTyped("index_fill takes a one-dimensional index")
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    return make(x.shape, x.dtype, widest(x, k))


def _draw_dim_and_fill(draw: Draw, x: Type) -> Params | None:
    found = one_dim(draw, x)
    return None if found is None else Params((*found.pairs, *draw_fill(draw, x).pairs))


def _scatter_index(args: Types, params: Params) -> tuple[TensorType, TensorType]:
    x, i = tensor(args[0]), tensor(args[1])
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or i.rank != x.rank:
        raise IllTyped("scatter's index has the tensor's rank")
    index_of(i, x.shape[dim])
    if any(i.shape[d] > x.shape[d] for d in range(x.rank) if d != dim):
        raise IllTyped("scatter's index is larger than the tensor elsewhere")
    return x, i


def _scatter_number(args: Types, params: Params) -> Type:
    x, _ = _scatter_index(args, params)
    k = params.number("k")
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    return make(x.shape, x.dtype, widest(x, k))


def _scatter_add(args: Types, params: Params) -> Type:
    x, i = _scatter_index(args, params)
    y = numeric(args[2])
    if y.dtype is not x.dtype or y.shape != i.shape:
        raise IllTyped("scatter_add's source does not match")
    return make(x.shape, x.dtype)


def _scatter_sorted(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[2])
    dim = axis(params.integer("dim"), x.rank)
    order = numeric(args[1])
    if not x.shape or order.shape != x.shape or y.shape != x.shape or y.dtype is not x.dtype:
        raise IllTyped("scatters by an order of the same shape")
    axis(dim, x.rank)
    return make(x.shape, x.dtype, widest(x, y))


def _selected(seen: Types, params: Params) -> tuple[int, ...] | None:
    x = tensor(seen[0])
    dim = axis(params.integer("dim"), x.rank)
    return (*x.shape[:dim], *x.shape[dim + 1 :])


def _sliced(seen: Types, params: Params) -> tuple[int, ...] | None:
    x = tensor(seen[0])
    dim = axis(params.integer("dim"), x.rank)
    count = len(range(params.integer("start"), params.integer("end"), params.integer("step")))
    return (*x.shape[:dim], count, *x.shape[dim + 1 :])


def _draw_select_scatter(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if not t.shape:
        return None
    dim = draw.integer(0, t.rank - 1)
    return Params.of(dim=dim, k=draw.integer(0, t.shape[dim] - 1))


def _select_scatter(args: Types, params: Params) -> Type:
    x, y, k = tensor(args[0]), tensor(args[1]), params.integer("k")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or not 0 <= k < x.shape[dim] or y.dtype is not x.dtype or y.shape != _selected(args, params):
        raise IllTyped("select_scatter's source does not match")
    return make(x.shape, x.dtype, widest(x, y))


def _draw_slice_scatter(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if not t.shape:
        return None
    dim = draw.integer(0, t.rank - 1)
    start = draw.integer(0, t.shape[dim] - 1)
    return Params.of(dim=dim, start=start, end=draw.integer(start + 1, t.shape[dim]), step=draw.choice((1, 2)))


def _slice_scatter(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[1])
    dim = axis(params.integer("dim"), x.rank)
    start, end, step = params.integer("start"), params.integer("end"), params.integer("step")
    if not x.shape or not 0 <= start < end <= x.shape[dim] or step < 1 or y.dtype is not x.dtype:
        raise IllTyped("slice_scatter outside the dim")
    if y.shape != _sliced(args, params):
        raise IllTyped("slice_scatter's source does not match")
    return make(x.shape, x.dtype, widest(x, y))


def _draw_stop(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    if not shape:
        return None
    start = draw.integer(0, shape[0] - 1)
    found = draw_fill(draw, x)
    return Params((("start", start), ("stop", draw.integer(start + 1, shape[0])), *found.pairs))


def _set_slice(args: Types, params: Params) -> Type:
    x, k = tensor(args[0]), params.number("k")
    if not x.shape or not 0 <= params.integer("start") < params.integer("stop") <= x.shape[0]:
        raise IllTyped("a slice outside the dim")
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    return bounded_write(x, widest(x, k) if x.high is not None else None)


def _set_masked(args: Types, params: Params) -> Type:
    x, mask, k = tensor(args[0]), boolean(args[1]), params.number("k")
    if not mask.rank or x.shape[: mask.rank] != mask.shape:
        raise IllTyped("the mask covers the first dims")
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    return bounded_write(x, widest(x, k) if x.high is not None else None)


def _sum_of_two(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] + sizes[2] * tensor(types[1]).numel


def _mask_total(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * prod(tensor(types[1]).shape)


def _values(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0]


def _written(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(sizes[0], sizes[-1])


def _with_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    k = abs(float(params.number("k")))
    return max(sizes[0], k if k != float("inf") else 0.0)


def _op(
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


_X1, _X2, _X3 = slots.anything(rank=1), slots.anything(rank=2), slots.anything(rank=3)
_N1 = slots.numeric(rank=1)
_I0, _I1, _I2 = (slots.index("i", slots.at(dim)) for dim in range(3))
_ROW = slots.unique_index("i", slots.at(0))
_LINE = slots.index("i", slots.by_param, (1, 1))
_UNIQUE_LINE = slots.unique_index("i", slots.by_param)
_LIKE = slots.index_like("i", slots.by_param)
_PUT = frozenset({Trait.EXACT, Trait.MUTATES})
_TABLE = Slot(
    name="table",
    fits=lambda value, seen, params: isinstance(value, TensorType) and value.dtype.is_floating and value.rank == 2,
)


def _whole(seen: Types, params: Params) -> tuple[int, ...] | None:
    return tensor(seen[0]).shape


OPS: Registry = (
    _op("index_0", "{x}[{i}]", (_X1, _I0), _at(0), 14),
    _op("index_1", "{x}[:, {i}]", (_X2, _I1), _at(1), 6),
    _op("index_2", "{x}[:, :, {i}]", (_X3, _I2), _at(2), 3),
    _op("index_01", "{x}[{i}, {j}]", (_X2, _I0, slots.index_beside("j", slots.at(1))), _at(0, 1), 5),
    _op("index_12", "{x}[:, {i}, {j}]", (_X3, _I1, slots.index_beside("j", slots.at(2))), _at(1, 2), 3),
    _op("index_02", "{x}[{i}, :, {j}]", (_X3, _I0, slots.index_beside("j", slots.at(2))), _at(0, 2), 3),
    _op(
        "index_rows",
        "{x}[torch.arange({size}, device={x}.device), {i}]",
        (_X2, slots.row_index("i")),
        _index_rows,
        2,
        _draw_rows,
    ),
    _op("mask_sum", "{x}[{mask}].sum(0)", (_X1, slots.leading_mask()), _mask_sum, 3, grows=_mask_total),
    _op("gather", "{x}.gather({dim}, {i})", (_X1, _LIKE), _gather, 6, one_dim),
    _op("take_along_dim", "torch.take_along_dim({x}, {i}, {dim})", (_X1, _LIKE), _take_along, 3, one_dim),
    _op("index_select", "{x}.index_select({dim}, {i})", (_X1, _LINE), _index_select, 6, one_dim),
    _op("take", "{x}.take({i})", (slots.anything(), slots.flat_index("i")), _take, 2),
    _op("embedding", "torch.nn.functional.embedding({i}, {table})", (_TABLE, _I0), _embedding, 6),
    _op(
        "one_hot",
        "torch.nn.functional.one_hot({x}, {classes})",
        (slots.integers(),),
        _one_hot,
        2,
        _draw_one_hot,
        grows=lambda sizes, types, params: 1.0,
    ),
    _op(
        "index_put",
        "{x}.index_put(({i},), {y})",
        (_X1, _ROW, slots.shaped("y", _rows_of)),
        _index_put,
        4,
        grows=_written,
    ),
    _op(
        "index_put_",
        "{x}.index_put_(({i},), {y})",
        (_X1, _ROW, slots.shaped("y", _rows_of)),
        _index_put_in_place,
        3,
        traits=_PUT,
        grows=_written,
    ),
    _op(
        "index_accumulate",
        "{x}.index_put(({i},), {y}, accumulate=True)",
        (_N1, _I0, slots.shaped("y", _rows_of)),
        _index_accumulate,
        2,
        grows=_sum_of_two,
    ),
    _op(
        "index_add",
        "{x}.index_add({dim}, {i}, {y})",
        (_N1, _LINE, slots.shaped("y", _along_dim)),
        _index_add,
        3,
        one_dim,
        grows=_sum_of_two,
    ),
    _op(
        "index_copy",
        "{x}.index_copy({dim}, {i}, {y})",
        (_X1, _UNIQUE_LINE, slots.shaped("y", _along_dim)),
        _index_copy,
        2,
        one_dim,
        grows=_written,
    ),
    _op(
        "index_fill", "{x}.index_fill({dim}, {i}, {k})", (_X1, _LINE), _index_fill, 2, _draw_dim_and_fill, grows=_with_k
    ),
    _op(
        "scatter_number",
        "{x}.scatter({dim}, {i}, {k})",
        (_X1, _LIKE),
        _scatter_number,
        3,
        _draw_dim_and_fill,
        grows=_with_k,
    ),
    _op(
        "scatter_add",
        "{x}.scatter_add({dim}, {i}, {y})",
        (_N1, _LIKE, slots.shaped("y", _index_shape)),
        _scatter_add,
        3,
        one_dim,
        grows=_sum_of_two,
    ),
    _op(
        "scatter_sorted",
        "{x}.scatter({dim}, {i}.argsort(dim={dim}, stable=True), {y})",
        (_X1, slots.numbers_like("i"), slots.shaped("y", _whole)),
        _scatter_sorted,
        2,
        one_dim,
        frozenset({Trait.EXACT, Trait.DISCONTINUOUS}),
        _written,
    ),
    _op(
        "select_scatter",
        "torch.select_scatter({x}, {y}, {dim}, {k})",
        (_X1, slots.shaped("y", _selected)),
        _select_scatter,
        2,
        _draw_select_scatter,
        grows=_written,
    ),
    _op(
        "slice_scatter",
        "torch.slice_scatter({x}, {y}, {dim}, {start}, {end}, {step})",
        (_X1, slots.shaped("y", _sliced)),
        _slice_scatter,
        4,
        _draw_slice_scatter,
        grows=_written,
    ),
    _op("set_slice", "{x}[{start}:{stop}] = {k}\n{out} = {x}", (_X1,), _set_slice, 3, _draw_stop, _PUT, _with_k),
    _op(
        "set_masked",
        "{x}[{mask}] = {k}\n{out} = {x}",
        (_X1, slots.leading_mask()),
        _set_masked,
        2,
        draw_fill,
        _PUT,
        _with_k,
    ),
)
