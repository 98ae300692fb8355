"""Reductions over all dims, one dim or several, with and without keepdim; scans, softmax and norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log10, prod, sqrt

from fuzzer.ops import slots
from fuzzer.ops.rules import axes, axis, floating, high_of, make, numeric, size_at, tensor, without
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Slot, Trait, Types, no_params
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


def _as_is(x: TensorType, count: int) -> tuple[DType, int | None]:
    return x.dtype, x.high


def _as_sum(x: TensorType, count: int) -> tuple[DType, int | None]:
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


def _reduce_all(result: Result, check: Callable[[Type], TensorType]) -> Callable[[Types, Params], Type]:
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


def _power_count(sizes: Sequence[float], types: Types, params: Params) -> float:
    count = count_folded(types, params)
    size = max(sizes[0], 1.0)
    return size**count if count * log10(size) < 300 else inf


def _squared(sizes: Sequence[float], types: Types, params: Params) -> float:
    return 4 * sizes[0] ** 2


def _position(sizes: Sequence[float], types: Types, params: Params) -> float:
    return float(count_folded(types, params))


def _one(sizes: Sequence[float], types: Types, params: Params) -> float:
    return 1.0


def _log(sizes: Sequence[float], types: Types, params: Params) -> float:
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
    return (*found, spec("_all", "", weights[2], _reduce_all(result, check), False)) if whole else found


_NUMERIC = (slots.numeric(), numeric)
_FLOATS = (slots.floats(), floating)
_ANY = (slots.anything(), tensor)


def _same(check: Callable[[Type], TensorType]) -> Callable[[Types, Params], Type]:
    def infer(args: Types, params: Params) -> Type:
        x = check(args[0])
        axis(params.integer("dim"), x.rank)
        return make(x.shape, x.dtype)

    return infer


def _scan(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    dim = axis(params.integer("dim"), x.rank)
    dtype, high = _as_sum(x, size_at(x, dim))
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


def _norm_size(sizes: Sequence[float], types: Types, params: Params) -> float:
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


def _var_mean(args: Types, params: Params) -> Type:
    return _reduce(_as_spread, False, floating)(args, params)


def _plain(
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


def _normal(sizes: Sequence[float], types: Types, params: Params) -> float:
    spread = sqrt(tensor(types[0]).shape[-1])
    return spread * max((1.0, *sizes[1:2])) + sum(sizes[2:])


OPS: Registry = (
    *_family("sum", _ANY, _as_sum, EXACT, _times_count, (24, 10, 6)),
    *_family("mean", _FLOATS, _as_is, ROUNDS, lambda sizes, types, params: sizes[0], (10, 5, 3)),
    *_family("amax", _NUMERIC, _as_is, EXACT, lambda sizes, types, params: sizes[0], (10, 5, 2)),
    *_family("amin", _NUMERIC, _as_is, EXACT, lambda sizes, types, params: sizes[0], (5, 2, 1)),
    *_family("prod", _NUMERIC, _as_product, EXACT | {Trait.SINGULAR}, _power_count, (2, 1, 1), single=True),
    *_family("any", _ANY, _as_bool, DISCRETE, _one, (3, 1, 1)),
    *_family("all", _ANY, _as_bool, DISCRETE, _one, (2, 1, 1)),
    *_family("argmax", _NUMERIC, _as_position, DISCRETE, _position, (5, 2, 1), single=True),
    *_family("argmin", _NUMERIC, _as_position, DISCRETE, _position, (2, 1, 1), single=True),
    *_family("var", _FLOATS, _as_spread, ROUNDS, _squared, (4, 2, 1)),
    *_family("std", _FLOATS, _as_spread, SPREAD, _squared, (2, 1, 1)),
    *_family("logsumexp", _FLOATS, _as_is, ROUNDS, _log, (3, 2, 0), whole=False),
    *_family(
        "max_values",
        _NUMERIC,
        _as_is,
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
        _as_is,
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
    _plain(
        "vector_norm_all",
        "torch.linalg.vector_norm({x})",
        _reduce_all(_as_is, floating),
        SPREAD,
        _norm_size,
        2,
        no_params,
    ),
    _plain("vector_norm", "torch.linalg.vector_norm({x}, dim={dim})", _norm, SPREAD, _norm_size, 2, some_dims),
    _plain(
        "vector_norm_ord",
        "torch.linalg.vector_norm({x}, {ord}, dim={dim})",
        _norm_ord,
        SPREAD,
        _norm_size,
        2,
        _draw_norm,
    ),
    _plain(
        "count_nonzero",
        "torch.count_nonzero({x}, {dim})",
        _reduce(_as_count, False, tensor),
        DISCRETE,
        _position,
        2,
        some_dims,
        (slots.anything(),),
    ),
    _plain("var_plus_mean", "torch.add(*torch.var_mean({x}, {dim}))", _var_mean, ROUNDS, _squared, 3, some_dims),
    _plain("softmax", "{x}.softmax({dim})", _same(floating), ROUNDS, _one, 10),
    _plain("log_softmax", "{x}.log_softmax({dim})", _same(floating), ROUNDS, _log, 4),
    _plain(
        "cumsum",
        "{x}.cumsum({dim})",
        _scan,
        EXACT,
        lambda sizes, types, params: sizes[0] * count_folded(types, params),
        6,
        takes=(slots.anything(),),
    ),
    _plain(
        "cumprod",
        "{x}.cumprod({dim})",
        _scan_product,
        EXACT | {Trait.SINGULAR},
        _power_count,
        1,
        takes=(slots.numeric(),),
    ),
    _plain(
        "sort",
        "{x}.sort({dim}).values",
        _sort,
        EXACT | {Trait.SINGULAR},
        lambda sizes, types, params: sizes[0],
        2,
        takes=(slots.numeric(),),
    ),
    _plain(
        "layer_norm",
        "torch.nn.functional.layer_norm({x}, ({size},))",
        _layer_norm,
        SPREAD,
        _normal,
        3,
        _draw_layer_norm,
        (slots.floats(rank=1),),
    ),
    _plain(
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
