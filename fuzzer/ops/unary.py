"""Pointwise functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp

from fuzzer.ops.pointwise import (
    ANY,
    EXACT,
    FLT,
    NUM,
    ROUNDS,
    STEP,
    Infer,
    at_most,
    float_unary,
    only_float,
    pointwise_op,
    to_bool,
)
from fuzzer.ops.rules import (
    make,
    numeric,
)
from fuzzer.ops.spec import (
    Params,
    Registry,
    Trait,
    Types,
)
from fuzzer.program import Type


def _unary(high: Callable[[int | None], int | None]) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x = numeric(args[0])
        return make(x.shape, x.dtype, high(x.high))

    return infer


def _square_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] ** 2


def _exp_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return exp(sizes[0]) if sizes[0] < 80 else float("inf")


OPS: Registry = (
    pointwise_op("relu", "{x}.relu()", NUM, _unary(lambda high: high), EXACT, weight=8),
    pointwise_op("neg", "-{x}", NUM, _unary(lambda high: None), EXACT),
    pointwise_op("abs", "{x}.abs()", NUM, _unary(lambda high: high), EXACT, weight=7),
    pointwise_op("sign", "{x}.sign()", NUM, _unary(lambda high: None), STEP, at_most(1.0), 1),
    pointwise_op(
        "square",
        "{x}.square()",
        NUM,
        _unary(lambda high: None if high is None else (high - 1) ** 2 + 1),
        EXACT,
        _square_size,
        5,
    ),
    pointwise_op("sigmoid", "{x}.sigmoid()", NUM, float_unary, ROUNDS, at_most(1.0)),
    pointwise_op("tanh", "{x}.tanh()", NUM, float_unary, ROUNDS, at_most(1.0)),
    pointwise_op("sin", "{x}.sin()", NUM, float_unary, ROUNDS, at_most(1.0), 2),
    pointwise_op("cos", "{x}.cos()", NUM, float_unary, ROUNDS, at_most(1.0), 2),
    pointwise_op("exp", "{x}.exp()", FLT, only_float, ROUNDS, _exp_size, 4),
    pointwise_op("exp_of_negative", "torch.exp(-{x}.abs())", FLT, only_float, ROUNDS, at_most(1.0), 2),
    pointwise_op("erf", "{x}.erf()", FLT, only_float, ROUNDS, at_most(1.0), 1),
    pointwise_op("gelu", "torch.nn.functional.gelu({x})", FLT, only_float, weight=3),
    pointwise_op("silu", "torch.nn.functional.silu({x})", FLT, only_float, weight=3),
    pointwise_op(
        "softplus",
        "torch.nn.functional.softplus({x})",
        FLT,
        only_float,
        ROUNDS,
        lambda sizes, types, params: sizes[0] + 1,
        1,
    ),
    pointwise_op(
        "safe_sqrt",
        "torch.sqrt({x}.abs() + 1)",
        FLT,
        only_float,
        ROUNDS,
        lambda sizes, types, params: sizes[0] + 2,
        2,
    ),
    pointwise_op("safe_rsqrt", "torch.rsqrt({x}.abs() + 1)", FLT, only_float, ROUNDS, at_most(1.0), 3),
    pointwise_op(
        "safe_log", "torch.log({x}.abs() + 1)", FLT, only_float, ROUNDS, lambda sizes, types, params: sizes[0] + 2, 2
    ),
    pointwise_op(
        "root",
        "{x}.abs().sqrt()",
        FLT,
        only_float,
        frozenset({Trait.SINGULAR}),
        lambda sizes, types, params: sizes[0] + 1,
        2,
    ),
    pointwise_op(
        "safe_reciprocal",
        "{k} / ({x}.abs() + 1)",
        FLT,
        only_float,
        ROUNDS,
        at_most(5.0),
        2,
        lambda draw, x: Params.of(k=draw.choice((1.0, 2.0, -3.0))),
    ),
    pointwise_op("floor", "{x}.floor()", FLT, only_float, STEP, lambda sizes, types, params: sizes[0] + 1, 1),
    pointwise_op("round", "{x}.round()", FLT, only_float, STEP, lambda sizes, types, params: sizes[0] + 1, 1),
    pointwise_op("isnan", "{x}.isnan()", FLT, to_bool, EXACT, at_most(1.0), 1),
    pointwise_op("logical_not", "{x}.logical_not()", ANY, to_bool, STEP, at_most(1.0), 2),
)
