"""Reductions over all dims, one dim or several, with and without keepdim; scans, softmax and norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log10, prod

from fuzzer.ops import slots
from fuzzer.ops.rules import axes, floating, high_of, make, numeric, size_at, tensor, without
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Slot, Trait, Types
from fuzzer.program import DType, TensorType, Type

Result = Callable[[TensorType, int], "tuple[DType, int | None]"]
"""Dtype and bound of a reduction's result, from its argument and the number of elements that fold into one."""


def draw_dim(draw: Draw, rank: int) -> int:
    """A dim, the last ones more often, sometimes counted from the end."""
    dim = draw.integer(0, rank - 1)
    return dim - rank if draw.chance(25) else dim


def draw_dims(draw: Draw, rank: int) -> int | tuple[int, ...]:
    """One dim, or several in increasing order."""
    if rank == 1 or draw.chance(55):
        return draw_dim(draw, rank)
    if rank == 2:
        return (0, 1)
    chosen = tuple(dim for dim in range(rank) if draw.chance(55))
    return chosen if len(chosen) > 1 else draw.choice(((0, 1), (rank - 2, rank - 1), (0, rank - 1)))


def one_dim(draw: Draw, x: Type) -> Params | None:
    """Parameter `dim`, one dim of x."""
    rank = tensor(x).rank
    return Params.of(dim=draw_dim(draw, rank)) if rank else None


def some_dims(draw: Draw, x: Type) -> Params | None:
    """Parameter `dim`, one or several dims of x."""
    rank = tensor(x).rank
    return Params.of(dim=draw_dims(draw, rank)) if rank else None


def _folded(x: TensorType, dims: Sequence[int]) -> int:
    return prod(size_at(x, dim) for dim in dims)


def as_is(x: TensorType, count: int) -> tuple[DType, int | None]:
    return x.dtype, x.high


def as_sum(x: TensorType, count: int) -> tuple[DType, int | None]:
    if x.dtype.is_floating:
        return x.dtype, None
    high = high_of(x)
    return DType.INT64, None if high is None else (high - 1) * count + 1


def _as_product(x: TensorType, count: int) -> tuple[DType, int | None]:
    return (x.dtype if x.dtype.is_floating else DType.INT64), None


def _as_count(x: TensorType, count: int) -> tuple[DType, int | None]:
    return DType.INT64, count + 1


def _as_position(x: TensorType, count: int) -> tuple[DType, int | None]:
    return DType.INT64, count


def _as_bool(x: TensorType, count: int) -> tuple[DType, int | None]:
    return DType.BOOL, None


def _as_spread(x: TensorType, count: int) -> tuple[DType, int | None]:
    if count < 2:
        raise IllTyped("the variance of one element is undefined")
    return x.dtype, None


def _reduce(result: Result, keepdim: bool, check: Callable[[Type], TensorType]) -> Callable[[Types, Params], Type]:
    def infer(args: Types, params: Params) -> Type:
        x = check(args[0])
        dims = axes(params.integers("dim"), x.rank)
        dtype, high = result(x, _folded(x, dims))
        return make(without(x.shape, dims, keepdim), dtype, high)

    return infer


def reduce_all(result: Result, check: Callable[[Type], TensorType]) -> Callable[[Types, Params], Type]:
    def infer(args: Types, params: Params) -> Type:
        x = check(args[0])
        dtype, high = result(x, x.numel)
        return make((), dtype, high)

    return infer


def count_folded(types: Types, params: Params) -> int:
    """How many elements fold into one."""
    x = tensor(types[0])
    if not any(name == "dim" for name, _ in params.pairs):
        return x.numel
    return _folded(x, axes(params.integers("dim"), x.rank))


def _times_count(sizes: Sequence[float], types: Types, params: Params) -> float:
    return sizes[0] * count_folded(types, params)


def power_count(sizes: Sequence[float], types: Types, params: Params) -> float:
    count = count_folded(types, params)
    size = max(sizes[0], 1.0)
    return size**count if count * log10(size) < 300 else inf


def squared(sizes: Sequence[float], types: Types, params: Params) -> float:
    return 4 * sizes[0] ** 2


def _position(sizes: Sequence[float], types: Types, params: Params) -> float:
    return float(count_folded(types, params))


def one(sizes: Sequence[float], types: Types, params: Params) -> float:
    return 1.0


def log_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return 2 * sizes[0] + 20.0


EXACT = frozenset({Trait.EXACT})
ROUNDS: frozenset[Trait] = frozenset()
DISCRETE = frozenset({Trait.EXACT, Trait.DISCONTINUOUS})
SPREAD = frozenset({Trait.SINGULAR})


def _family(
    name: str,
    takes: tuple[Slot, Callable[[Type], TensorType]],
    result: Result,
    traits: frozenset[Trait],
    grows: Grows,
    weights: tuple[int, int, int],
    *,
    single: bool = False,
    call: str = "",
    suffix: str = "",
    whole: bool = True,
) -> Registry:
    """`x.name()`, `x.name(dim)` and `x.name(dim, keepdim=True)` as three operators."""
    x, check = takes
    open_call = call or "{x}." + name + "("
    comma = ", " if call else ""
    dims = one_dim if single else some_dims

    def spec(tag: str, text: str, weight: int, infer: Callable[[Types, Params], Type], reduces_dims: bool) -> OpSpec:
        return OpSpec(
            name=name + tag,
            family=Family.REDUCTIONS,
            template=open_call + text + ")" + suffix,
            slots=(x,),
            infer=infer,
            traits=traits,
            grows=grows,
            weight=weight,
            **({"draw": dims} if reduces_dims else {}),
        )

    found = (
        spec("", comma + "{dim}", weights[0], _reduce(result, False, check), True),
        spec("_keepdim", comma + "{dim}, keepdim=True", weights[1], _reduce(result, True, check), True),
    )
    return (*found, spec("_all", "", weights[2], reduce_all(result, check), False)) if whole else found


_NUMERIC = (slots.numeric(), numeric)
_FLOATS = (slots.floats(), floating)
_ANY = (slots.anything(), tensor)


def _var_mean(args: Types, params: Params) -> Type:
    return _reduce(_as_spread, False, floating)(args, params)


def reduction_op(
    name: str,
    template: str,
    infer: Callable[[Types, Params], Type],
    traits: frozenset[Trait],
    grows: Grows,
    weight: int,
    draw: Callable[[Draw, Type], Params | None] = one_dim,
    takes: tuple[Slot, ...] = (slots.floats(),),
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.REDUCTIONS,
        template=template,
        slots=takes,
        infer=infer,
        traits=traits,
        grows=grows,
        weight=weight,
        draw=draw,
    )


OPS: Registry = (
    *_family("sum", _ANY, as_sum, EXACT, _times_count, (24, 10, 6)),
    *_family("mean", _FLOATS, as_is, ROUNDS, lambda sizes, types, params: sizes[0], (10, 5, 3)),
    *_family("amax", _NUMERIC, as_is, EXACT, lambda sizes, types, params: sizes[0], (10, 5, 2)),
    *_family("amin", _NUMERIC, as_is, EXACT, lambda sizes, types, params: sizes[0], (5, 2, 1)),
    *_family("prod", _NUMERIC, _as_product, EXACT | {Trait.SINGULAR}, power_count, (2, 1, 1), single=True),
    *_family("any", _ANY, _as_bool, DISCRETE, one, (3, 1, 1)),
    *_family("all", _ANY, _as_bool, DISCRETE, one, (2, 1, 1)),
    *_family("argmax", _NUMERIC, _as_position, DISCRETE, _position, (5, 2, 1), single=True),
    *_family("argmin", _NUMERIC, _as_position, DISCRETE, _position, (2, 1, 1), single=True),
    *_family("var", _FLOATS, _as_spread, ROUNDS, squared, (4, 2, 1)),
    *_family("std", _FLOATS, _as_spread, SPREAD, squared, (2, 1, 1)),
    *_family("logsumexp", _FLOATS, as_is, ROUNDS, log_size, (3, 2, 0), whole=False),
    *_family(
        "max_values",
        _NUMERIC,
        as_is,
        EXACT | {Trait.SINGULAR},
        lambda sizes, types, params: sizes[0],
        (3, 1, 0),
        single=True,
        call="torch.max({x}",
        suffix=".values",
        whole=False,
    ),
    *_family(
        "min_values",
        _NUMERIC,
        as_is,
        EXACT | {Trait.SINGULAR},
        lambda sizes, types, params: sizes[0],
        (1, 1, 0),
        single=True,
        call="torch.min({x}",
        suffix=".values",
        whole=False,
    ),
    *_family(
        "max_indices",
        _NUMERIC,
        _as_position,
        DISCRETE,
        _position,
        (2, 1, 0),
        single=True,
        call="torch.max({x}",
        suffix=".indices",
        whole=False,
    ),
    reduction_op(
        "count_nonzero",
        "torch.count_nonzero({x}, {dim})",
        _reduce(_as_count, False, tensor),
        DISCRETE,
        _position,
        2,
        some_dims,
        (slots.anything(),),
    ),
    reduction_op("var_plus_mean", "torch.add(*torch.var_mean({x}, {dim}))", _var_mean, ROUNDS, squared, 3, some_dims),
)
