"""Writes by index: index_put, index_add, scatter, slices that are assigned, in place and not."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzer.ops import slots
from fuzzer.ops.in_place import bounded_write
from fuzzer.ops.indexing import I0, LIKE, LINE, N1, X1, index_of, index_op
from fuzzer.ops.masking import draw_fill
from fuzzer.ops.reductions import one_dim
from fuzzer.ops.rules import (
    axis,
    boolean,
    broadcasts_to,
    fits_dtype,
    high_of,
    make,
    numeric,
    size_at,
    tensor,
    widest,
)
from fuzzer.ops.spec import Draw, IllTyped, Params, Registry, Trait, Types
from fuzzer.program import DType, TensorType, Type


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


def _written(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(sizes[0], sizes[-1])


def _with_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    k = abs(float(params.number("k")))
    return max(sizes[0], k if k != float("inf") else 0.0)


_ROW = slots.unique_index("i", slots.at(0))


_UNIQUE_LINE = slots.unique_index("i", slots.by_param)


_PUT = frozenset({Trait.EXACT, Trait.MUTATES})


def _whole(seen: Types, params: Params) -> tuple[int, ...] | None:
    return tensor(seen[0]).shape


OPS: Registry = (
    index_op(
        "index_put",
        "{x}.index_put(({i},), {y})",
        (X1, _ROW, slots.shaped("y", _rows_of)),
        _index_put,
        4,
        grows=_written,
    ),
    index_op(
        "index_put_",
        "{x}.index_put_(({i},), {y})",
        (X1, _ROW, slots.shaped("y", _rows_of)),
        _index_put_in_place,
        3,
        traits=_PUT,
        grows=_written,
    ),
    index_op(
        "index_accumulate",
        "{x}.index_put(({i},), {y}, accumulate=True)",
        (N1, I0, slots.shaped("y", _rows_of)),
        _index_accumulate,
        2,
        grows=_sum_of_two,
    ),
    index_op(
        "index_add",
        "{x}.index_add({dim}, {i}, {y})",
        (N1, LINE, slots.shaped("y", _along_dim)),
        _index_add,
        3,
        one_dim,
        grows=_sum_of_two,
    ),
    index_op(
        "index_copy",
        "{x}.index_copy({dim}, {i}, {y})",
        (X1, _UNIQUE_LINE, slots.shaped("y", _along_dim)),
        _index_copy,
        2,
        one_dim,
        grows=_written,
    ),
    index_op(
        "index_fill", "{x}.index_fill({dim}, {i}, {k})", (X1, LINE), _index_fill, 2, _draw_dim_and_fill, grows=_with_k
    ),
    index_op(
        "scatter_number",
        "{x}.scatter({dim}, {i}, {k})",
        (X1, LIKE),
        _scatter_number,
        3,
        _draw_dim_and_fill,
        grows=_with_k,
    ),
    index_op(
        "scatter_add",
        "{x}.scatter_add({dim}, {i}, {y})",
        (N1, LIKE, slots.shaped("y", _index_shape)),
        _scatter_add,
        3,
        one_dim,
        grows=_sum_of_two,
    ),
    index_op(
        "scatter_sorted",
        "{x}.scatter({dim}, {i}.argsort(dim={dim}, stable=True), {y})",
        (X1, slots.numbers_like("i"), slots.shaped("y", _whole)),
        _scatter_sorted,
        2,
        one_dim,
        frozenset({Trait.EXACT, Trait.DISCONTINUOUS}),
        _written,
    ),
    index_op(
        "select_scatter",
        "torch.select_scatter({x}, {y}, {dim}, {k})",
        (X1, slots.shaped("y", _selected)),
        _select_scatter,
        2,
        _draw_select_scatter,
        grows=_written,
    ),
    index_op(
        "slice_scatter",
        "torch.slice_scatter({x}, {y}, {dim}, {start}, {end}, {step})",
        (X1, slots.shaped("y", _sliced)),
        _slice_scatter,
        4,
        _draw_slice_scatter,
        grows=_written,
    ),
    index_op("set_slice", "{x}[{start}:{stop}] = {k}\n{out} = {x}", (X1,), _set_slice, 3, _draw_stop, _PUT, _with_k),
    index_op(
        "set_masked",
        "{x}[{mask}] = {k}\n{out} = {x}",
        (X1, slots.leading_mask()),
        _set_masked,
        2,
        draw_fill,
        _PUT,
        _with_k,
    ),
)
