"""Masks: masked_fill, where, triangles, clamps, in place and not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from fuzzer.ops import slots
from fuzzer.ops.in_place import IN_PLACE, bounded_write
from fuzzer.ops.pointwise import EXACT
from fuzzer.ops.rules import (
    boolean,
    broadcast,
    broadcasts_to,
    fits_dtype,
    floating,
    high_of,
    make,
    numeric,
    promote,
    tensor,
    widest,
)
from fuzzer.ops.spec import (
    Draw,
    Family,
    Grows,
    IllTyped,
    Number,
    OpSpec,
    Params,
    Registry,
    Slot,
    Trait,
    Types,
    same_size,
)
from fuzzer.program import DType, TensorType, Type

Infer = Callable[[Types, Params], Type]


def draw_fill(draw: Draw, x: Type) -> Params:
    """Parameter `k`: a fill value that x's dtype holds."""
    dtype = tensor(x).dtype
    if dtype is DType.BOOL:
        return Params.of(k=draw.chance(50))
    if dtype.is_integer:
        return Params.of(k=draw.choice((0, 1, -1, 7)))
    options: tuple[Number, ...] = (0.0, 0, -1.0, 1.0, 0.5, -1e4)
    return Params.of(k=float("-inf") if draw.chance(4) else draw.choice(options))


def _masked(x: TensorType, mask: Type) -> None:
    if not broadcasts_to(boolean(mask).shape, x.shape):
        raise IllTyped("a mask larger than what it masks")


def _filled_high(x: TensorType, k: Number) -> int | None:
    return None if x.high is None else widest(x, k)


def _masked_fill(args: Types, params: Params) -> Type:
    x, k = tensor(args[0]), params.number("k")
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    # The mask may also be the larger one: the result then has its shape.
    return make(broadcast(x.shape, boolean(args[1]).shape), x.dtype, _filled_high(x, k))


def _masked_fill_in_place(args: Types, params: Params) -> Type:
    x, k = tensor(args[0]), params.number("k")
    _masked(x, args[1])
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    return bounded_write(x, _filled_high(x, k))


def _masked_fill_tensor(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[2])
    _masked(x, args[1])
    if y.shape != () or y.dtype is not x.dtype:
        raise IllTyped("masked_fill takes a 0-d tensor of the same dtype")
    return make(x.shape, x.dtype, widest(x, y))


def _where(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[2])
    shape = broadcast(x.shape, boolean(args[1]).shape, y.shape)
    return make(shape, promote(x, y), widest(x, y))


def _where_number(args: Types, params: Params) -> Type:
    x, k = tensor(args[0]), params.number("k")
    dtype = promote(x, k)
    return make(broadcast(x.shape, boolean(args[1]).shape), dtype, widest(x, k))


def _triangle(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    params.integer("k")
    if x.rank < 2:
        raise IllTyped("a triangle needs two dims")
    return x


def _draw_triangle(draw: Draw, x: Type) -> Params | None:
    return Params.of(k=draw.choice((0, 1, -1, 3))) if tensor(x).rank > 1 else None


def _draw_clamp(draw: Draw, x: Type) -> Params:
    if tensor(x).dtype.is_floating:
        low, high = draw.choice(((-1.0, 1.0), (0.0, 2.0), (-0.5, 0.25)))
        return Params.of(low=low, high=high)
    low_whole, high_whole = draw.choice(((0, 2), (-1, 1), (1, 4)))
    return Params.of(low=low_whole, high=high_whole)


def _clamp(args: Types, params: Params) -> Type:
    x, low, high = numeric(args[0]), params.number("low"), params.number("high")
    if not (fits_dtype(low, x.dtype) and fits_dtype(high, x.dtype)) or low > high:
        raise IllTyped("clamp's bounds do not fit")
    bound = None
    if isinstance(low, int) and isinstance(high, int) and low >= 0:
        bound = high + 1
    return make(x.shape, x.dtype, bound)


def _clamp_min(args: Types, params: Params) -> Type:
    x, k = numeric(args[0]), params.number("k")
    if not fits_dtype(k, x.dtype):
        raise IllTyped("clamp's bound does not fit")
    return make(x.shape, x.dtype, widest(x, k) if isinstance(k, int) and k >= 0 else None)


def _clamp_in_place(args: Types, params: Params) -> Type:
    return bounded_write(numeric(args[0]), high_of(_clamp(args, params)))


def _nan_to_num(args: Types, params: Params) -> Type:
    x, k = floating(args[0]), params.number("k")
    if not fits_dtype(k, x.dtype) or not isfinite(k):
        raise IllTyped("nan_to_num's value does not fit")
    return make(x.shape, x.dtype)


def _masked_scatter(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[2])
    _masked(x, args[1])
    if y.dtype is not x.dtype or y.shape != x.shape:
        raise IllTyped("masked_scatter's source does not match")
    return make(x.shape, x.dtype, widest(x, y))


def _with_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    k = abs(float(params.number("k")))
    return max(sizes[0], k if isfinite(k) else 0.0)


def _clamped(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(abs(float(params.number("low"))), abs(float(params.number("high"))))


def _same_shape(seen: Types, params: Params) -> tuple[int, ...] | None:
    return tensor(seen[0]).shape


def _op(
    name: str,
    template: str,
    takes: tuple[Slot, ...],
    infer: Infer,
    weight: int,
    draw: Callable[[Draw, Type], Params | None] | None = None,
    traits: frozenset[Trait] = EXACT,
    grows: Grows = same_size,
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.MASKING,
        template=template,
        slots=takes,
        infer=infer,
        traits=traits,
        grows=grows,
        weight=weight,
        **({} if draw is None else {"draw": draw}),
    )


_MASKED = (slots.anything(), slots.mask())
_NUMBERS = (slots.numeric(), slots.mask())

OPS: Registry = (
    _op("masked_fill", "{x}.masked_fill({mask}, {k})", _MASKED, _masked_fill, 14, draw_fill, grows=_with_k),
    _op("masked_fill_tensor", "{x}.masked_fill({mask}, {y})", (*_NUMBERS, slots.zero_d()), _masked_fill_tensor, 3),
    _op(
        "masked_fill_", "{x}.masked_fill_({mask}, {k})", _MASKED, _masked_fill_in_place, 4, draw_fill, IN_PLACE, _with_k
    ),
    _op("where", "torch.where({mask}, {x}, {y})", (*_MASKED, slots.partner()), _where, 8),
    _op("where_number", "torch.where({mask}, {x}, {k})", _MASKED, _where_number, 5, draw_fill, grows=_with_k),
    _op("where_else", "torch.where({mask}, {k}, {x})", _MASKED, _where_number, 3, draw_fill, grows=_with_k),
    _op(
        "masked_scatter",
        "{x}.masked_scatter({mask}, {y})",
        (*_NUMBERS, slots.shaped("y", _same_shape)),
        _masked_scatter,
        1,
    ),
    _op("tril", "{x}.tril({k})", (slots.anything(rank=2),), _triangle, 3, _draw_triangle),
    _op("triu", "{x}.triu({k})", (slots.anything(rank=2),), _triangle, 3, _draw_triangle),
    _op("clamp", "{x}.clamp({low}, {high})", (slots.numeric(),), _clamp, 5, _draw_clamp, grows=_clamped),
    _op(
        "clamp_min",
        "{x}.clamp(min={k})",
        (slots.numeric(),),
        _clamp_min,
        3,
        lambda draw, x: Params.of(k=draw.choice((0, 1))),
        grows=_with_k,
    ),
    _op("clamp_", "{x}.clamp_({low}, {high})", (slots.numeric(),), _clamp_in_place, 2, _draw_clamp, IN_PLACE, _clamped),
    _op(
        "nan_to_num",
        "{x}.nan_to_num({k})",
        (slots.floats(),),
        _nan_to_num,
        2,
        lambda draw, x: Params.of(k=draw.choice((0.0, 1.0))),
        grows=_with_k,
    ),
)
