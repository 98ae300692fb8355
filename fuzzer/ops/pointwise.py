"""Arithmetic, comparisons, casts and in-place arithmetic, with broadcasting and dtype promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from fuzzer.ops import slots
from fuzzer.ops.rules import (
    boolean,
    broadcast,
    floating,
    high_of,
    make,
    numeric,
    promote,
    tensor,
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
High = Callable[["int | None", "int | None"], "int | None"]

EXACT = frozenset({Trait.EXACT})
ROUNDS: frozenset[Trait] = frozenset()
STEP = frozenset({Trait.EXACT, Trait.DISCONTINUOUS})

FLOAT_NUMBERS: tuple[Number, ...] = (2.0, 0.5, -1.5, 3.0, 0.125, 1, 2)
WHOLE_NUMBERS: tuple[Number, ...] = (2, 1, 3, -1, 5)


def draw_number(draw: Draw, x: Type) -> Params:
    """Parameter `k`: a literal of x's own kind, mostly; a float beside integers promotes."""
    dtype = tensor(x).dtype
    if dtype.is_floating:
        return Params.of(k=draw.choice(FLOAT_NUMBERS if draw.chance(60) else WHOLE_NUMBERS))
    return Params.of(k=draw.choice(FLOAT_NUMBERS if draw.chance(10) else WHOLE_NUMBERS))


def _divisor(draw: Draw, x: Type) -> Params:
    return Params.of(k=draw.choice((2, 3, 5, 7, 16)))


def float_unary(args: Types, params: Params) -> Type:
    x = numeric(args[0])
    return make(x.shape, x.dtype if x.dtype.is_floating else DType.FLOAT32)


def only_float(args: Types, params: Params) -> Type:
    x = floating(args[0])
    return make(x.shape, x.dtype)


def to_bool(args: Types, params: Params) -> Type:
    return make(tensor(args[0]).shape, DType.BOOL)


def _bool_binary(args: Types, params: Params) -> Type:
    return make(broadcast(boolean(args[0]).shape, boolean(args[1]).shape), DType.BOOL)


def _binary(high: High, floats: bool = False) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        left, right = tensor(args[0]), tensor(args[1])
        if left.dtype is right.dtype is DType.BOOL:
            raise IllTyped("arithmetic on two bools")
        dtype = promote(left, right)
        if floats and not dtype.is_floating:
            dtype = DType.FLOAT32
        return make(broadcast(left.shape, right.shape), dtype, high(high_of(left), high_of(right)))

    return infer


def _without_bools(infer: Infer) -> Infer:
    """For what PyTorch refuses on a bool on either side."""

    def checked(args: Types, params: Params) -> Type:
        numeric(args[0])
        numeric(args[1])
        return infer(args, params)

    return checked


def _compare(args: Types, params: Params) -> Type:
    return make(broadcast(tensor(args[0]).shape, tensor(args[1]).shape), DType.BOOL)


def _compare_number(args: Types, params: Params) -> Type:
    params.number("k")
    return make(numeric(args[0]).shape, DType.BOOL)


def _with_number(high: Callable[[int | None, Number], int | None]) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x, k = numeric(args[0]), params.number("k")
        return make(x.shape, promote(x, k), high(x.high, k))

    return infer


def shifted(high: int | None, k: Number) -> int | None:
    return high + k if high is not None and isinstance(k, int) and k >= 0 else None


def scaled(high: int | None, k: Number) -> int | None:
    return (high - 1) * k + 1 if high is not None and isinstance(k, int) and k >= 0 else None


def sum_high(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right - 1


def product_high(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else (left - 1) * (right - 1) + 1


def _larger(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)


def _smaller(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else min(left, right)


def _unknown(left: int | None, right: int | None) -> int | None:
    return None


def _whole_divisor(args: Types, params: Params) -> tuple[TensorType, int]:
    x, k = numeric(args[0]), params.integer("k")
    if x.dtype.is_floating or k < 1:
        raise IllTyped("integer division is by a positive literal")
    return x, k


def _remainder(args: Types, params: Params) -> Type:
    x, k = _whole_divisor(args, params)
    return make(x.shape, x.dtype, k)


def _quotient(args: Types, params: Params) -> Type:
    x, k = _whole_divisor(args, params)
    return make(x.shape, x.dtype, None if x.high is None else (x.high - 1) // k + 1)


def _cast(args: Types, params: Params) -> Type:
    x, dtype = tensor(args[0]), params.dtype("dtype")
    if x.dtype.is_floating and dtype.is_integer:
        raise IllTyped("a float that does not fit an integer has no defined value: clamp first")
    if x.dtype is dtype:
        raise IllTyped("a cast to the same dtype")
    return make(x.shape, dtype, high_of(x))


def _draw_cast(draw: Draw, x: Type) -> Params:
    dtype = tensor(x).dtype
    floats = [DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16]
    whole = [DType.INT64, DType.INT32, DType.BOOL] if not dtype.is_floating else [DType.BOOL]
    options = [one for one in (*floats, *whole) if one is not dtype]
    return Params.of(dtype=str(draw.choice(options)))


def _to_whole(args: Types, params: Params) -> Type:
    x, dtype = floating(args[0]), params.dtype("dtype")
    if not dtype.is_integer:
        raise IllTyped("a cast to an integer dtype")
    return make(x.shape, dtype)


def _draw_whole(draw: Draw, x: Type) -> Params:
    return Params.of(dtype=str(draw.choice((DType.INT64, DType.INT32))))


def _lerp(args: Types, params: Params) -> Type:
    x, y = floating(args[0]), floating(args[1])
    if x.dtype is not y.dtype:
        raise IllTyped("lerp of two dtypes")
    params.number("k")
    return make(broadcast(x.shape, y.shape), x.dtype)


def _draw_fraction(draw: Draw, x: Type) -> Params:
    return Params.of(k=draw.choice((0.5, 0.25, 0.75)))


def sum_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sum(sizes)


def product_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    result = 1.0
    for size in sizes:
        result *= size
    return result


def _number_of(params: Params) -> float:
    k = abs(float(params.number("k")))
    return k if isfinite(k) else 1.0


def plus_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] + _number_of(params)


def times_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * _number_of(params)


def _over_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] / max(_number_of(params), 1e-3)


def at_most(bound: float) -> Grows:
    """For operators whose result is bounded whatever the argument."""
    return lambda sizes, types, params: bound


def pointwise_op(
    name: str,
    template: str,
    takes: Slot | tuple[Slot, ...],
    infer: Infer,
    traits: frozenset[Trait] = ROUNDS,
    grows: Grows = same_size,
    weight: int = 4,
    draw: Callable[[Draw, Type], Params | None] | None = None,
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.POINTWISE,
        template=template,
        slots=takes if isinstance(takes, tuple) else (takes,),
        infer=infer,
        traits=traits,
        grows=grows,
        weight=weight,
        **({} if draw is None else {"draw": draw}),
    )


NUM, FLT, _INT, ANY, _BOOL = slots.numeric(), slots.floats(), slots.integers(), slots.anything(), slots.bools()
_PAIR = (NUM, slots.partner())
_BOOLS = (_BOOL, slots.partner(accepts=lambda dtype: dtype is DType.BOOL))

OPS: Registry = (
    pointwise_op(
        "power",
        "{x} ** {k}",
        NUM,
        _with_number(lambda high, k: None),
        EXACT,
        lambda sizes, types, params: max(sizes[0], 1.0) ** 3,
        2,
        lambda draw, x: Params.of(k=draw.choice((2, 3))),
    ),
    pointwise_op("add", "{x} + {y}", (ANY, slots.partner()), _binary(sum_high), EXACT, sum_size, 16),
    pointwise_op("sub", "{x} - {y}", _PAIR, _without_bools(_binary(_unknown)), EXACT, sum_size, 10),
    pointwise_op(
        "mul",
        "{x} * {y}",
        (NUM, slots.partner(accepts=lambda dtype: True)),
        _binary(product_high),
        EXACT,
        product_size,
        18,
    ),
    pointwise_op(
        "safe_div",
        "{x} / ({y}.abs() + 1)",
        _PAIR,
        _without_bools(_binary(_unknown, floats=True)),
        ROUNDS,
        lambda sizes, types, params: sizes[0],
        4,
    ),
    pointwise_op("maximum", "torch.maximum({x}, {y})", _PAIR, _binary(_larger), EXACT, weight=4),
    pointwise_op("minimum", "torch.minimum({x}, {y})", _PAIR, _binary(_smaller), EXACT, weight=3),
    pointwise_op(
        "lerp",
        "torch.lerp({x}, {y}, {k})",
        (FLT, slots.partner(accepts=lambda dtype: dtype.is_floating)),
        _lerp,
        ROUNDS,
        sum_size,
        1,
        _draw_fraction,
    ),
    pointwise_op("gt", "{x} > {y}", _PAIR, _compare, STEP, at_most(1.0), 3),
    pointwise_op("le", "{x} <= {y}", _PAIR, _compare, STEP, at_most(1.0), 2),
    pointwise_op("eq", "{x} == {y}", _PAIR, _compare, STEP, at_most(1.0), 1),
    pointwise_op(
        "gt_number",
        "{x} > {k}",
        NUM,
        _compare_number,
        STEP,
        at_most(1.0),
        5,
        lambda draw, x: Params.of(k=draw.choice((0, 1, 0.5, -1))),
    ),
    pointwise_op(
        "lt_number",
        "{x} < {k}",
        NUM,
        _compare_number,
        STEP,
        at_most(1.0),
        2,
        lambda draw, x: Params.of(k=draw.choice((0, 1, 0.5, -1))),
    ),
    pointwise_op(
        "ne_number",
        "{x} != {k}",
        NUM,
        _compare_number,
        STEP,
        at_most(1.0),
        2,
        lambda draw, x: Params.of(k=draw.choice((0, 1, -1))),
    ),
    pointwise_op("and", "{x} & {y}", _BOOLS, _bool_binary, EXACT, at_most(1.0), 6),
    pointwise_op("or", "{x} | {y}", _BOOLS, _bool_binary, EXACT, at_most(1.0), 2),
    pointwise_op("xor", "{x} ^ {y}", _BOOLS, _bool_binary, EXACT, at_most(1.0), 1),
    pointwise_op(
        "not", "~{x}", _BOOL, lambda args, params: make(boolean(args[0]).shape, DType.BOOL), EXACT, at_most(1.0), 3
    ),
    pointwise_op("add_number", "{x} + {k}", NUM, _with_number(shifted), EXACT, plus_k, 10, draw_number),
    pointwise_op("sub_number", "{x} - {k}", NUM, _with_number(lambda high, k: None), EXACT, plus_k, 3, draw_number),
    pointwise_op("number_minus", "{k} - {x}", NUM, _with_number(lambda high, k: None), EXACT, plus_k, 3, draw_number),
    pointwise_op("mul_number", "{x} * {k}", NUM, _with_number(scaled), EXACT, times_k, 10, draw_number),
    pointwise_op(
        "div_number",
        "{x} / {k}",
        FLT,
        only_float,
        ROUNDS,
        _over_k,
        4,
        lambda draw, x: Params.of(k=draw.choice((2.0, 3.0, 0.5, 7, 1000.0))),
    ),
    pointwise_op(
        "remainder", "{x} % {k}", _INT, _remainder, EXACT, lambda sizes, types, params: _number_of(params), 4, _divisor
    ),
    pointwise_op(
        "floor_divide", "{x} // {k}", _INT, _quotient, EXACT, lambda sizes, types, params: sizes[0] + 1, 2, _divisor
    ),
    pointwise_op(
        "cast",
        "{x}.to({dtype})",
        ANY,
        _cast,
        frozenset({Trait.EXACT, Trait.DISCONTINUOUS}),
        lambda sizes, types, params: 1.0 if params.dtype("dtype") is DType.BOOL else sizes[0],
        7,
        _draw_cast,
    ),
    pointwise_op(
        "to_whole",
        "{x}.nan_to_num().clamp(-100, 100).to({dtype})",
        FLT,
        _to_whole,
        STEP,
        at_most(100.0),
        3,
        _draw_whole,
    ),
)
