"""Values that leave the graph: `.item()`, `.tolist()`, and branches, loops and slices that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzer.ops import slots
from fuzzer.ops.pointwise import EXACT
from fuzzer.ops.rules import boolean, floating, like, make, number, numeric, promote, tensor, widest
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Slot, Trait, Types
from fuzzer.program import DType, ScalarType, TensorType, Type

Infer = Callable[[Types, Params], Type]

STEP = frozenset({Trait.EXACT, Trait.DISCONTINUOUS})
ROUNDS: frozenset[Trait] = frozenset()


def _item(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    if x.numel != 1:
        raise IllTyped("item() of several elements")
    if x.dtype.is_floating:
        return ScalarType(dtype=DType.FLOAT64)
    if x.dtype is DType.BOOL:
        return ScalarType(dtype=DType.BOOL)
    return ScalarType(dtype=DType.INT64, high=None if x.high is None else x.high - 1)


def _arithmetic(high: Callable[[TensorType], int | None]) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x, v = numeric(args[0]), number(args[1])
        return make(x.shape, promote(x, v), high(x))

    return infer


def _scale_down(args: Types, params: Params) -> Type:
    x, _ = floating(args[0]), number(args[1])
    return make(x.shape, x.dtype)


def _fill(args: Types, params: Params) -> Type:
    x, mask, v = numeric(args[0]), boolean(args[1]), number(args[2])
    if mask.shape != x.shape or (v.dtype.is_floating and not x.dtype.is_floating):
        raise IllTyped("masked_fill with a number of another kind")
    return make(x.shape, x.dtype)


def _alike(left: Type, right: Type) -> TensorType:
    a, b = tensor(left), tensor(right)
    if a.shape != b.shape or a.dtype is not b.dtype:
        raise IllTyped("the two branches differ in type")
    return make(a.shape, a.dtype, widest(a, b))


def _choose(args: Types, params: Params) -> Type:
    number(args[2])
    params.number("k")
    return _alike(args[0], args[1])


def _choose_truth(args: Types, params: Params) -> Type:
    number(args[2])
    return _alike(args[0], args[1])


def _choose_tensor(args: Types, params: Params) -> Type:
    if tensor(args[2]).numel != 1:
        raise IllTyped("the truth of several elements")
    return _alike(args[0], args[1])


def _branch(args: Types, params: Params) -> Type:
    x = numeric(args[0])
    number(args[1])
    params.number("k")
    return make(x.shape, x.dtype)


def _whole(value: Type) -> ScalarType:
    v = number(value)
    if v.dtype is DType.FLOAT64:
        raise IllTyped("an integer is needed: a float may be NaN")
    return v


def _loop(args: Types, params: Params) -> Type:
    x = numeric(args[0])
    _whole(args[1])
    if isinstance(params.number("k"), float) and not x.dtype.is_floating:
        raise IllTyped("a float step on integers")
    return make(x.shape, x.dtype)


def _bounded(dim: int, result: Callable[[TensorType], tuple[DType, int | None]]) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x = numeric(args[0])
        _whole(args[1])
        if x.rank <= dim or not 1 <= params.integer("size") <= x.shape[dim]:
            raise IllTyped("a slice bound outside the dim")
        dtype, high = result(x)
        return make((*x.shape[:dim], *x.shape[dim + 1 :]), dtype, high)

    return infer


def _select(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    _whole(args[1])
    if not x.shape or not 1 <= params.integer("size") <= x.shape[0]:
        raise IllTyped("an index outside the dim")
    return like(x, x.shape[1:])


def _draw_size(dim: int) -> Callable[[Draw, Type], Params | None]:
    def draw_it(draw: Draw, x: Type) -> Params | None:
        shape = tensor(x).shape
        return Params.of(size=shape[dim]) if len(shape) > dim else None

    return draw_it


def _lengths(value: Type) -> TensorType:
    found = tensor(value)
    if found.rank != 1 or found.high is None:
        raise IllTyped("lengths have one dim and a known sum")
    return found


def _ragged_sum(args: Types, params: Params) -> Type:
    x, lengths = numeric(args[0]), _lengths(args[1])
    if not x.shape or lengths.high != x.shape[0] + 1:
        raise IllTyped("the lengths do not add up to the dim")
    dtype = x.dtype if x.dtype.is_floating else DType.INT64
    return make((lengths.shape[0], *x.shape[1:]), dtype)


def _ragged_scale(args: Types, params: Params) -> Type:
    x, lengths = numeric(args[0]), _lengths(args[1])
    if not x.shape or lengths.high != x.shape[0] + 1:
        raise IllTyped("the lengths do not add up to the dim")
    return make(x.shape, x.dtype)


def _ragged_repeat(args: Types, params: Params) -> Type:
    x, lengths = tensor(args[0]), _lengths(args[1])
    if not x.shape or lengths.shape != x.shape[:1] or lengths.high is None:
        raise IllTyped("one length a row")
    return like(x, (lengths.high - 1, *x.shape[1:]))


def _weighted(args: Types, params: Params) -> Type:
    x, y = numeric(args[0]), numeric(args[1])
    if y.rank != 1 or y.shape[0] > 8 or (y.dtype.is_floating and not x.dtype.is_floating):
        raise IllTyped("a short list of numbers of the tensor's kind")
    return make(x.shape, promote(x, ScalarType(dtype=DType.FLOAT64 if y.dtype.is_floating else DType.INT64)))


def _short_list(value: Type, seen: Types, params: Params) -> bool:
    x = seen[0]
    if not isinstance(value, TensorType) or not isinstance(x, TensorType):
        return False
    if value.rank != 1 or value.shape[0] > 8 or value.dtype is DType.BOOL:
        return False
    return x.dtype.is_floating or not value.dtype.is_floating


def _draw_threshold(draw: Draw, x: Type) -> Params:
    return Params.of(k=draw.choice((0, 1, -2, 0.5)))


def _draw_branch(draw: Draw, x: Type) -> Params:
    return Params.of(k=draw.choice((0, 1, -2)), a=draw.choice((2, 3, -1)), b=draw.choice((1, 5, -3)))


def _draw_step(draw: Draw, x: Type) -> Params:
    return Params.of(k=draw.choice((2, -1) if not tensor(x).dtype.is_floating else (2, 0.5, -1)))


def _first(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0]


def _two(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(sizes[0], sizes[1])


def _product(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * sizes[1]


def _sum(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] + sizes[1]


def _over(dim: int) -> Grows:
    return lambda sizes, types, params: sizes[0] * tensor(types[0]).shape[dim]


def _eight(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * (abs(float(params.number("k"))) + 1) ** 3


def _op(
    name: str,
    template: str,
    takes: tuple[Slot, ...],
    infer: Infer,
    weight: int,
    draw: Callable[[Draw, Type], Params | None] | None = None,
    traits: frozenset[Trait] = EXACT,
    grows: Grows = _first,
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.GRAPH_BREAKS,
        template=template,
        slots=takes,
        infer=infer,
        traits=traits,
        grows=grows,
        weight=weight,
        **({} if draw is None else {"draw": draw}),
    )


def _sum_type(x: TensorType) -> tuple[DType, int | None]:
    return (x.dtype if x.dtype.is_floating else DType.INT64), None


def _own_type(x: TensorType) -> tuple[DType, int | None]:
    return x.dtype, x.high


_NUM, _V = slots.numeric(), slots.scalar()
_INT = slots.scalar(accepts=lambda dtype: dtype is DType.INT64)
_OTHER = slots.shaped("y", lambda seen, params: tensor(seen[0]).shape)
_EITHER = frozenset({Trait.EXACT, Trait.DISCONTINUOUS, Trait.ALIASES, Trait.ALIASES_SECOND})

OPS: Registry = (
    _op("item", "{x}.item()", (slots.one_element(),), _item, 6),
    _op("scale", "{x} * {v}", (_NUM, _V), _arithmetic(lambda x: None), 6, grows=_product),
    _op("shift", "{x} + {v}", (_NUM, _V), _arithmetic(lambda x: None), 4, grows=_sum),
    _op("scale_down", "{x} / (abs({v}) + 1)", (slots.floats(), _V), _scale_down, 4, traits=ROUNDS),
    _op(
        "fill_with_item",
        "{x}.masked_fill({mask}, {v})",
        (_NUM, slots.mask_like(), _V),
        _fill,
        2,
        grows=lambda sizes, types, params: max(sizes[0], sizes[2]),
    ),
    _op("choose", "{x} if {v} > {k} else {y}", (_NUM, _OTHER, _V), _choose, 4, _draw_threshold, _EITHER, _two),
    _op("choose_truth", "{x} if {v} else {y}", (_NUM, _OTHER, _V), _choose_truth, 2, None, _EITHER, _two),
    _op(
        "choose_tensor", "{x} if {flag} else {y}", (_NUM, _OTHER, slots.flag()), _choose_tensor, 2, None, _EITHER, _two
    ),
    _op(
        "branch",
        "if {v} > {k}:\n    {out} = {x} * {a}\nelse:\n    {out} = {x} + {b}",
        (_NUM, _V),
        _branch,
        5,
        _draw_branch,
        STEP,
        lambda sizes, types, params: sizes[0] * 3 + 5,
    ),
    _op(
        "loop",
        "{out} = {x}\nfor _ in range({v} % 3 + 1):\n    {out} = {out} * {k} + {x}",
        (_NUM, _INT),
        _loop,
        4,
        _draw_step,
        STEP,
        _eight,
    ),
    _op(
        "slice_sum",
        "{x}[: {v} % {size} + 1].sum(0)",
        (slots.numeric(rank=1), _INT),
        _bounded(0, _sum_type),
        3,
        _draw_size(0),
        STEP,
        _over(0),
    ),
    _op(
        "slice_amax",
        "{x}[:, : {v} % {size} + 1].amax(1)",
        (slots.numeric(rank=2), _INT),
        _bounded(1, _own_type),
        3,
        _draw_size(1),
        STEP,
    ),
    _op(
        "select_by_item",
        "{x}[{v} % {size}]",
        (slots.anything(rank=1), _INT),
        _select,
        2,
        _draw_size(0),
        frozenset({Trait.EXACT, Trait.DISCONTINUOUS, Trait.ALIASES}),
    ),
    _op(
        "ragged_sum",
        "torch.stack([piece.sum(0) for piece in {x}.split({lengths}.tolist())])",
        (slots.numeric(rank=1), slots.lengths()),
        _ragged_sum,
        4,
        grows=_over(0),
    ),
    _op(
        "ragged_scale",
        "torch.cat([piece * (k + 1) for k, piece in enumerate({x}.split({lengths}.tolist()))])",
        (slots.numeric(rank=1), slots.lengths()),
        _ragged_scale,
        2,
        grows=lambda sizes, types, params: sizes[0] * tensor(types[1]).shape[0],
    ),
    _op(
        "ragged_repeat",
        "{x}.repeat_interleave({lengths}, 0)",
        (slots.anything(rank=1), slots.lengths(total=False)),
        _ragged_repeat,
        2,
    ),
    _op(
        "weighted_sum",
        "sum({x} * k for k in {y}.tolist())",
        (_NUM, Slot(name="y", fits=_short_list, fresh=slots.short_list)),
        _weighted,
        3,
        grows=lambda sizes, types, params: sizes[0] * sizes[1] * 8,
    ),
)
