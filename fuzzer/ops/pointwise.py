"""Arithmetic, comparisons, casts and in-place arithmetic, with broadcasting and dtype promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, isfinite

from fuzzer.ops import slots
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
IN_PLACE = frozenset({Trait.EXACT, Trait.MUTATES})

_FLOAT_NUMBERS: tuple[Number, ...] = (2.0, 0.5, -1.5, 3.0, 0.125, 1, 2)
_WHOLE_NUMBERS: tuple[Number, ...] = (2, 1, 3, -1, 5)


def draw_number(draw: Draw, x: Type) -> Params:
    """Parameter `k`: a literal of x's own kind, mostly; a float beside integers promotes."""
    dtype = tensor(x).dtype
    if dtype.is_floating:
        return Params.of(k=draw.choice(_FLOAT_NUMBERS if draw.chance(60) else _WHOLE_NUMBERS))
    return Params.of(k=draw.choice(_FLOAT_NUMBERS if draw.chance(10) else _WHOLE_NUMBERS))


def draw_own_number(draw: Draw, x: Type) -> Params:
    """Parameter `k`: a literal that does not promote x."""
    return Params.of(
        k=draw.choice(_FLOAT_NUMBERS if tensor(x).dtype.is_floating and draw.chance(60) else _WHOLE_NUMBERS)
    )


def _divisor(draw: Draw, x: Type) -> Params:
    return Params.of(k=draw.choice((2, 3, 5, 7, 16)))


def _float_unary(args: Types, params: Params) -> Type:
    x = numeric(args[0])
    return make(x.shape, x.dtype if x.dtype.is_floating else DType.FLOAT32)


def _only_float(args: Types, params: Params) -> Type:
    x = floating(args[0])
    return make(x.shape, x.dtype)


def _unary(high: Callable[[int | None], int | None]) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x = numeric(args[0])
        return make(x.shape, x.dtype, high(x.high))

    return infer


def _same_type(args: Types, params: Params) -> Type:
    return numeric(args[0])


def _to_bool(args: Types, params: Params) -> Type:
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


def _shifted(high: int | None, k: Number) -> int | None:
    return high + k if high is not None and isinstance(k, int) and k >= 0 else None


def _scaled(high: int | None, k: Number) -> int | None:
    return (high - 1) * k + 1 if high is not None and isinstance(k, int) and k >= 0 else None


def _sum_high(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right - 1


def _product_high(left: int | None, right: int | None) -> int | None:
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


def bounded_write(x: TensorType, high: int | None) -> TensorType:
    """The type after an in-place write: an integer bound that others rely on must still hold."""
    if x.high is not None and (high is None or high > x.high):
        raise IllTyped("an in-place write that breaks the bound of an index")
    return x


def _in_place_tensor(high: High) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x, y = numeric(args[0]), numeric(args[1])
        if not broadcasts_to(y.shape, x.shape):
            raise IllTyped("an in-place operation cannot grow its target")
        if x.dtype.is_integer and promote(x, y).is_floating:
            raise IllTyped("a float cannot be written into integers")
        return bounded_write(x, high(x.high, high_of(y)))

    return infer


def _in_place_number(high: Callable[[int | None, Number], int | None]) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x, k = numeric(args[0]), params.number("k")
        if not fits_dtype(k, x.dtype):
            raise IllTyped("a float cannot be written into integers")
        return bounded_write(x, high(x.high, k))

    return infer


def _copy(args: Types, params: Params) -> Type:
    x, y = numeric(args[0]), numeric(args[1])
    if not broadcasts_to(y.shape, x.shape) or (y.dtype.is_floating and not x.dtype.is_floating):
        raise IllTyped("copy_ cannot grow its target, and floats have no defined integer value")
    return bounded_write(x, high_of(y))


def _sum_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sum(sizes)


def _product_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    result = 1.0
    for size in sizes:
        result *= size
    return result


def _number_of(params: Params) -> float:
    k = abs(float(params.number("k")))
    return k if isfinite(k) else 1.0


def _plus_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] + _number_of(params)


def _times_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * _number_of(params)


def _over_k(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] / max(_number_of(params), 1e-3)


def _square_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] ** 2


def _exp_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return exp(sizes[0]) if sizes[0] < 80 else float("inf")


def at_most(bound: float) -> Grows:
    """For operators whose result is bounded whatever the argument."""
    return lambda sizes, types, params: bound


def _op(
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


_NUM, _FLT, _INT, _ANY, _BOOL = slots.numeric(), slots.floats(), slots.integers(), slots.anything(), slots.bools()
_PAIR = (_NUM, slots.partner())
_BOOLS = (_BOOL, slots.partner(accepts=lambda dtype: dtype is DType.BOOL))
_WRITE = (_NUM, slots.narrow_partner(same_kind=True))

OPS: Registry = (
    _op("relu", "{x}.relu()", _NUM, _unary(lambda high: high), EXACT, weight=8),
    _op("neg", "-{x}", _NUM, _unary(lambda high: None), EXACT),
    _op("abs", "{x}.abs()", _NUM, _unary(lambda high: high), EXACT, weight=7),
    _op("sign", "{x}.sign()", _NUM, _unary(lambda high: None), STEP, at_most(1.0), 1),
    _op(
        "square",
        "{x}.square()",
        _NUM,
        _unary(lambda high: None if high is None else (high - 1) ** 2 + 1),
        EXACT,
        _square_size,
        5,
    ),
    _op(
        "power",
        "{x} ** {k}",
        _NUM,
        _with_number(lambda high, k: None),
        EXACT,
        lambda sizes, types, params: max(sizes[0], 1.0) ** 3,
        2,
        lambda draw, x: Params.of(k=draw.choice((2, 3))),
    ),
    _op("sigmoid", "{x}.sigmoid()", _NUM, _float_unary, ROUNDS, at_most(1.0)),
    _op("tanh", "{x}.tanh()", _NUM, _float_unary, ROUNDS, at_most(1.0)),
    _op("sin", "{x}.sin()", _NUM, _float_unary, ROUNDS, at_most(1.0), 2),
    _op("cos", "{x}.cos()", _NUM, _float_unary, ROUNDS, at_most(1.0), 2),
    _op("exp", "{x}.exp()", _FLT, _only_float, ROUNDS, _exp_size, 4),
    _op("exp_of_negative", "torch.exp(-{x}.abs())", _FLT, _only_float, ROUNDS, at_most(1.0), 2),
    _op("erf", "{x}.erf()", _FLT, _only_float, ROUNDS, at_most(1.0), 1),
    _op("gelu", "torch.nn.functional.gelu({x})", _FLT, _only_float, weight=3),
    _op("silu", "torch.nn.functional.silu({x})", _FLT, _only_float, weight=3),
    _op(
        "softplus",
        "torch.nn.functional.softplus({x})",
        _FLT,
        _only_float,
        ROUNDS,
        lambda sizes, types, params: sizes[0] + 1,
        1,
    ),
    _op(
        "safe_sqrt",
        "torch.sqrt({x}.abs() + 1)",
        _FLT,
        _only_float,
        ROUNDS,
        lambda sizes, types, params: sizes[0] + 2,
        2,
    ),
    _op("safe_rsqrt", "torch.rsqrt({x}.abs() + 1)", _FLT, _only_float, ROUNDS, at_most(1.0), 3),
    _op(
        "safe_log", "torch.log({x}.abs() + 1)", _FLT, _only_float, ROUNDS, lambda sizes, types, params: sizes[0] + 2, 2
    ),
    _op(
        "root",
        "{x}.abs().sqrt()",
        _FLT,
        _only_float,
        frozenset({Trait.SINGULAR}),
        lambda sizes, types, params: sizes[0] + 1,
        2,
    ),
    _op(
        "safe_reciprocal",
        "{k} / ({x}.abs() + 1)",
        _FLT,
        _only_float,
        ROUNDS,
        at_most(5.0),
        2,
        lambda draw, x: Params.of(k=draw.choice((1.0, 2.0, -3.0))),
    ),
    _op("floor", "{x}.floor()", _FLT, _only_float, STEP, lambda sizes, types, params: sizes[0] + 1, 1),
    _op("round", "{x}.round()", _FLT, _only_float, STEP, lambda sizes, types, params: sizes[0] + 1, 1),
    _op("isnan", "{x}.isnan()", _FLT, _to_bool, EXACT, at_most(1.0), 1),
    _op("logical_not", "{x}.logical_not()", _ANY, _to_bool, STEP, at_most(1.0), 2),
    _op("add", "{x} + {y}", (_ANY, slots.partner()), _binary(_sum_high), EXACT, _sum_size, 16),
    _op("sub", "{x} - {y}", _PAIR, _binary(_unknown), EXACT, _sum_size, 10),
    _op(
        "mul",
        "{x} * {y}",
        (_NUM, slots.partner(accepts=lambda dtype: True)),
        _binary(_product_high),
        EXACT,
        _product_size,
        18,
    ),
    _op(
        "safe_div",
        "{x} / ({y}.abs() + 1)",
        _PAIR,
        _binary(_unknown, floats=True),
        ROUNDS,
        lambda sizes, types, params: sizes[0],
        4,
    ),
    _op("maximum", "torch.maximum({x}, {y})", _PAIR, _binary(_larger), EXACT, weight=4),
    _op("minimum", "torch.minimum({x}, {y})", _PAIR, _binary(_smaller), EXACT, weight=3),
    _op(
        "lerp",
        "torch.lerp({x}, {y}, {k})",
        (_FLT, slots.partner(accepts=lambda dtype: dtype.is_floating)),
        _lerp,
        ROUNDS,
        _sum_size,
        1,
        _draw_fraction,
    ),
    _op("gt", "{x} > {y}", _PAIR, _compare, STEP, at_most(1.0), 3),
    _op("le", "{x} <= {y}", _PAIR, _compare, STEP, at_most(1.0), 2),
    _op("eq", "{x} == {y}", _PAIR, _compare, STEP, at_most(1.0), 1),
    _op(
        "gt_number",
        "{x} > {k}",
        _NUM,
        _compare_number,
        STEP,
        at_most(1.0),
        5,
        lambda draw, x: Params.of(k=draw.choice((0, 1, 0.5, -1))),
    ),
    _op(
        "lt_number",
        "{x} < {k}",
        _NUM,
        _compare_number,
        STEP,
        at_most(1.0),
        2,
        lambda draw, x: Params.of(k=draw.choice((0, 1, 0.5, -1))),
    ),
    _op(
        "ne_number",
        "{x} != {k}",
        _NUM,
        _compare_number,
        STEP,
        at_most(1.0),
        2,
        lambda draw, x: Params.of(k=draw.choice((0, 1, -1))),
    ),
    _op("and", "{x} & {y}", _BOOLS, _bool_binary, EXACT, at_most(1.0), 6),
    _op("or", "{x} | {y}", _BOOLS, _bool_binary, EXACT, at_most(1.0), 2),
    _op("xor", "{x} ^ {y}", _BOOLS, _bool_binary, EXACT, at_most(1.0), 1),
    _op("not", "~{x}", _BOOL, lambda args, params: make(boolean(args[0]).shape, DType.BOOL), EXACT, at_most(1.0), 3),
    _op("add_number", "{x} + {k}", _NUM, _with_number(_shifted), EXACT, _plus_k, 10, draw_number),
    _op("sub_number", "{x} - {k}", _NUM, _with_number(lambda high, k: None), EXACT, _plus_k, 3, draw_number),
    _op("number_minus", "{k} - {x}", _NUM, _with_number(lambda high, k: None), EXACT, _plus_k, 3, draw_number),
    _op("mul_number", "{x} * {k}", _NUM, _with_number(_scaled), EXACT, _times_k, 10, draw_number),
    _op(
        "div_number",
        "{x} / {k}",
        _FLT,
        _only_float,
        ROUNDS,
        _over_k,
        4,
        lambda draw, x: Params.of(k=draw.choice((2.0, 3.0, 0.5, 7, 1000.0))),
    ),
    _op(
        "remainder", "{x} % {k}", _INT, _remainder, EXACT, lambda sizes, types, params: _number_of(params), 4, _divisor
    ),
    _op("floor_divide", "{x} // {k}", _INT, _quotient, EXACT, lambda sizes, types, params: sizes[0] + 1, 2, _divisor),
    _op(
        "cast",
        "{x}.to({dtype})",
        _ANY,
        _cast,
        frozenset({Trait.EXACT, Trait.DISCONTINUOUS}),
        lambda sizes, types, params: 1.0 if params.dtype("dtype") is DType.BOOL else sizes[0],
        7,
        _draw_cast,
    ),
    _op(
        "to_whole",
        "{x}.nan_to_num().clamp(-100, 100).to({dtype})",
        _FLT,
        _to_whole,
        STEP,
        at_most(100.0),
        3,
        _draw_whole,
    ),
    _op("add_", "{x}.add_({y})", _WRITE, _in_place_tensor(_sum_high), IN_PLACE, _sum_size, 6),
    _op("mul_", "{x}.mul_({y})", _WRITE, _in_place_tensor(_product_high), IN_PLACE, _product_size, 4),
    _op("add_number_", "{x}.add_({k})", _NUM, _in_place_number(_shifted), IN_PLACE, _plus_k, 7, draw_own_number),
    _op("mul_number_", "{x}.mul_({k})", _NUM, _in_place_number(_scaled), IN_PLACE, _times_k, 4, draw_own_number),
    _op("relu_", "{x}.relu_()", _NUM, _same_type, IN_PLACE, weight=4),
    _op("copy_", "{x}.copy_({y})", _WRITE, _copy, IN_PLACE, lambda sizes, types, params: sizes[1], 4),
)
