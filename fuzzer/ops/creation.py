"""Tensors made inside a program, on the device of one that is there: constants and ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzer.ops import slots
from fuzzer.ops.masking import draw_fill
from fuzzer.ops.pointwise import Infer, at_most
from fuzzer.ops.rules import fits_dtype, high_of, make, numeric, tensor
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Trait, Types
from fuzzer.program import DType, TensorType, Type


def _like(high: int) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x = tensor(args[0])
        return make(x.shape, x.dtype, high)

    return infer


def _filled(x: TensorType, shape: tuple[int, ...], params: Params) -> Type:
    k = params.number("k")
    if not fits_dtype(k, x.dtype) or (x.dtype is DType.BOOL) != isinstance(k, bool):
        raise IllTyped(f"fills {x.dtype} with {k!r}")
    return make(shape, x.dtype, high_of(k))


def _full_like(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    return _filled(x, x.shape, params)


def _new_full(args: Types, params: Params) -> Type:
    return _filled(tensor(args[0]), params.integers("shape"), params)


def _draw_new_full(draw: Draw, x: Type) -> Params:
    shape = tensor(x).shape
    shape = shape[draw.integer(0, len(shape)) :] or (1,)
    return Params((("shape", shape), *draw_fill(draw, x).pairs))


def _arange(args: Types, params: Params) -> Type:
    tensor(args[0])
    size = params.integer("size")
    return make((size,), DType.INT64, size)


def _draw_arange(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    return Params.of(size=draw.choice(shape[::-1])) if shape else None


def _positions(args: Types, params: Params) -> Type:
    x, size = numeric(args[0]), params.integer("size")
    if not x.shape or x.shape[-1] != size:
        raise IllTyped("positions along the last dim")
    return make(x.shape, DType.BOOL)


def _draw_positions(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    return Params.of(size=shape[-1]) if shape else None


def _fill_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    k = abs(float(params.number("k")))
    return k if k != float("inf") else 0.0


def _op(
    name: str,
    template: str,
    infer: Infer,
    grows: Grows,
    weight: int,
    draw: Callable[[Draw, Type], Params | None] | None = None,
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.POINTWISE,
        template=template,
        slots=(slots.anything(),),
        infer=infer,
        traits=frozenset({Trait.EXACT, Trait.CONSTANT}),
        grows=grows,
        weight=weight,
        **({} if draw is None else {"draw": draw}),
    )


OPS: Registry = (
    _op("zeros_like", "torch.zeros_like({x})", _like(1), at_most(0.0), 2),
    _op("ones_like", "torch.ones_like({x})", _like(2), at_most(1.0), 1),
    _op("full_like", "torch.full_like({x}, {k})", _full_like, _fill_size, 2, draw_fill),
    _op("new_full", "{x}.new_full({shape}, {k})", _new_full, _fill_size, 2, _draw_new_full),
    _op(
        "arange",
        "torch.arange({size}, device={x}.device)",
        _arange,
        lambda sizes, types, params: float(params.integer("size")),
        3,
        _draw_arange,
    ),
    OpSpec(
        name="before_position",
        family=Family.MASKING,
        template="torch.arange({size}, device={x}.device) < {x}",
        slots=(slots.numeric(rank=1),),
        infer=_positions,
        draw=_draw_positions,
        traits=frozenset({Trait.EXACT, Trait.DISCONTINUOUS}),
        grows=at_most(1.0),
        weight=2,
    ),
)
