"""Arithmetic that writes to its first argument."""

from __future__ import annotations

from collections.abc import Callable

from fuzzer.ops import slots
from fuzzer.ops.pointwise import (
    FLOAT_NUMBERS,
    NUM,
    WHOLE_NUMBERS,
    High,
    Infer,
    plus_k,
    pointwise_op,
    product_high,
    product_size,
    scaled,
    shifted,
    sum_high,
    sum_size,
    times_k,
)
from fuzzer.ops.rules import (
    broadcasts_to,
    fits_dtype,
    high_of,
    numeric,
    promote,
    tensor,
)
from fuzzer.ops.spec import (
    Draw,
    IllTyped,
    Number,
    Params,
    Registry,
    Trait,
    Types,
)
from fuzzer.program import TensorType, Type

IN_PLACE = frozenset({Trait.EXACT, Trait.MUTATES})


def draw_own_number(draw: Draw, x: Type) -> Params:
    """Parameter `k`: a literal that does not promote x."""
    return Params.of(k=draw.choice(FLOAT_NUMBERS if tensor(x).dtype.is_floating and draw.chance(60) else WHOLE_NUMBERS))


def _same_type(args: Types, params: Params) -> Type:
    return numeric(args[0])


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


_WRITE = (NUM, slots.narrow_partner(same_kind=True))


OPS: Registry = (
    pointwise_op("add_", "{x}.add_({y})", _WRITE, _in_place_tensor(sum_high), IN_PLACE, sum_size, 6),
    pointwise_op("mul_", "{x}.mul_({y})", _WRITE, _in_place_tensor(product_high), IN_PLACE, product_size, 4),
    pointwise_op("add_number_", "{x}.add_({k})", NUM, _in_place_number(shifted), IN_PLACE, plus_k, 7, draw_own_number),
    pointwise_op("mul_number_", "{x}.mul_({k})", NUM, _in_place_number(scaled), IN_PLACE, times_k, 4, draw_own_number),
    pointwise_op("relu_", "{x}.relu_()", NUM, _same_type, IN_PLACE, weight=4),
    pointwise_op("copy_", "{x}.copy_({y})", _WRITE, _copy, IN_PLACE, lambda sizes, types, params: sizes[1], 4),
)
