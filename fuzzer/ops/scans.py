"""Scans, softmax, sorts, norms and layer_norm: what runs along a dim and mostly keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from fuzzer.ops import slots
from fuzzer.ops.reductions import (
    EXACT,
    ROUNDS,
    SPREAD,
    as_is,
    as_sum,
    count_folded,
    draw_dims,
    log_size,
    one,
    power_count,
    reduce_all,
    reduction_op,
    some_dims,
)
from fuzzer.ops.rules import axes, axis, floating, make, size_at, tensor, without
from fuzzer.ops.spec import Draw, IllTyped, Params, Registry, Trait, Types, no_params
from fuzzer.program import DType, TensorType, Type


def _same(check: Callable[[Type], TensorType]) -> Callable[[Types, Params], Type]:
    def infer(args: Types, params: Params) -> Type:
        x = check(args[0])
        axis(params.integer("dim"), x.rank)
        return make(x.shape, x.dtype)

    return infer


def _scan(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    dim = axis(params.integer("dim"), x.rank)
    dtype, high = as_sum(x, size_at(x, dim))
    return make(x.shape, dtype, high)


def _scan_product(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    axis(params.integer("dim"), x.rank)
    return make(x.shape, x.dtype if x.dtype.is_floating else DType.INT64)


def _sort(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    axis(params.integer("dim"), x.rank)
    return make(x.shape, x.dtype, x.high)


def _norm(args: Types, params: Params) -> Type:
    x = floating(args[0])
    return make(without(x.shape, axes(params.integers("dim"), x.rank)), x.dtype)


def _draw_norm(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    if not rank:
        return None
    return Params.of(ord=draw.choice((1, 3, float("inf"), 0.5)), dim=draw_dims(draw, rank))


def _norm_ord(args: Types, params: Params) -> Type:
    if params.number("ord") not in (1, 3, float("inf"), 0.5):
        raise IllTyped("an order other than 1, 3, inf and 0.5")
    return _norm(args, params)


def norm_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(sizes[0], 1.0) * count_folded(types, params) ** 2


def _layer_norm(args: Types, params: Params) -> Type:
    x = floating(args[0])
    size = params.integer("size")
    if not x.shape or x.shape[-1] != size or size < 2:
        raise IllTyped("layer_norm's size is not the last dim's, or is 1")
    for extra in args[1:]:
        if floating(extra).shape != (size,) or floating(extra).dtype is not x.dtype:
            raise IllTyped("layer_norm's weight does not match")
    return x


def _draw_layer_norm(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    return Params.of(size=shape[-1]) if shape and shape[-1] > 1 else None


def _last(seen: Types, params: Params) -> tuple[int, ...] | None:
    return (params.integer("size"),)


def _normal(sizes: Sequence[float], types: Types, params: Params) -> float:
    spread = sqrt(tensor(types[0]).shape[-1])
    return spread * max((1.0, *sizes[1:2])) + sum(sizes[2:])


OPS: Registry = (
    reduction_op(
        "vector_norm_all",
        "torch.linalg.vector_norm({x})",
        reduce_all(as_is, floating),
        SPREAD,
        norm_size,
        2,
        no_params,
    ),
    reduction_op("vector_norm", "torch.linalg.vector_norm({x}, dim={dim})", _norm, SPREAD, norm_size, 2, some_dims),
    reduction_op(
        "vector_norm_ord",
        "torch.linalg.vector_norm({x}, {ord}, dim={dim})",
        _norm_ord,
        SPREAD,
        norm_size,
        2,
        _draw_norm,
    ),
    reduction_op("softmax", "{x}.softmax({dim})", _same(floating), ROUNDS, one, 10),
    reduction_op("log_softmax", "{x}.log_softmax({dim})", _same(floating), ROUNDS, log_size, 4),
    reduction_op(
        "cumsum",
        "{x}.cumsum({dim})",
        _scan,
        EXACT,
        lambda sizes, types, params: sizes[0] * count_folded(types, params),
        6,
        takes=(slots.anything(),),
    ),
    reduction_op(
        "cumprod",
        "{x}.cumprod({dim})",
        _scan_product,
        EXACT | {Trait.SINGULAR},
        power_count,
        1,
        takes=(slots.numeric(),),
    ),
    reduction_op(
        "sort",
        "{x}.sort({dim}).values",
        _sort,
        EXACT | {Trait.SINGULAR},
        lambda sizes, types, params: sizes[0],
        2,
        takes=(slots.numeric(),),
    ),
    reduction_op(
        "layer_norm",
        "torch.nn.functional.layer_norm({x}, ({size},))",
        _layer_norm,
        SPREAD,
        _normal,
        3,
        _draw_layer_norm,
        (slots.floats(rank=1),),
    ),
    reduction_op(
        "layer_norm_affine",
        "torch.nn.functional.layer_norm({x}, ({size},), {weight}, {bias})",
        _layer_norm,
        SPREAD,
        _normal,
        3,
        _draw_layer_norm,
        (slots.floats(rank=1), slots.shaped("weight", _last), slots.shaped("bias", _last)),
    ),
)
