"""Changes of order, shape and extent: permutes, reshapes across permuted dims, slices, flips, pads, concatenation."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from fuzzer.ops import slots
from fuzzer.ops.pointwise import EXACT
from fuzzer.ops.reductions import draw_dim
from fuzzer.ops.rules import axes, axis, broadcasts_to, like, tensor
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Slot, Trait, Types, same_size
from fuzzer.program import Type

Infer = Callable[[Types, Params], Type]

VIEW = frozenset({Trait.EXACT, Trait.ALIASES})
OVERLAPPING = VIEW | {Trait.OVERLAPS}


def draw_order(draw: Draw, rank: int) -> tuple[int, ...]:
    """An order of the dims that is not the identity, unless the rank leaves no other."""
    left = list(range(rank))
    order = []
    while left:
        order.append(left.pop(draw.integer(0, len(left) - 1)))
    return tuple(order) if order != list(range(rank)) else tuple(reversed(order))


def _draw_permute(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    return Params.of(dims=draw_order(draw, rank)) if rank > 1 else None


def _permute(args: Types, params: Params) -> Type:
    x, dims = tensor(args[0]), params.integers("dims")
    if len(dims) != x.rank:
        raise IllTyped("permute names every dim")
    return like(x, (x.shape[dim] for dim in axes(dims, x.rank)))


def _draw_two_dims(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    if rank < 2:
        return None
    first = draw.integer(0, rank - 1)
    second = (first + draw.integer(1, rank - 1)) % rank
    return Params.of(dim0=first, dim1=second)


def _transpose(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    first, second = axis(params.integer("dim0"), x.rank), axis(params.integer("dim1"), x.rank)
    shape = list(x.shape)
    if shape:
        shape[first], shape[second] = shape[second], shape[first]
    return like(x, shape)


def _movedim(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    source, target = axis(params.integer("dim0"), x.rank), axis(params.integer("dim1"), x.rank)
    shape = list(x.shape)
    if shape:
        shape.insert(target, shape.pop(source))
    return like(x, shape)


def _matrix_transpose(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    if x.rank < 2:
        raise IllTyped("mT needs two dims")
    return like(x, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


def factors(size: int) -> tuple[int, ...]:
    """The divisors of a size other than 1 and itself, small ones first."""
    return tuple(k for k in range(2, min(size // 2, 512) + 1) if size % k == 0)


def draw_shape(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape of as many elements: neighbouring dims merged, one dim split, or both."""
    sizes = list(shape)
    if len(sizes) > 1 and draw.chance(60):
        where = draw.integer(0, len(sizes) - 2)
        sizes[where : where + 2] = [sizes[where] * sizes[where + 1]]
    splits = [(where, factors(size)) for where, size in enumerate(sizes)]
    splits = [(where, options) for where, options in splits if options]
    if splits and len(sizes) < 5 and (tuple(sizes) == shape or draw.chance(50)):
        where, options = draw.choice(splits)
        inner = draw.choice(options)
        sizes[where : where + 1] = [sizes[where] // inner, inner]
    if tuple(sizes) == shape:
        sizes = [prod(sizes)] if len(sizes) > 1 and draw.chance(50) else [*sizes, 1]
    return tuple(sizes)


def _draw_reshape(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    if not shape:
        return Params.of(shape=(1,))
    return Params.of(shape=draw_shape(draw, shape) if draw.chance(85) else (-1,))


def _reshape(args: Types, params: Params) -> Type:
    x, shape = tensor(args[0]), list(params.integers("shape"))
    if shape.count(-1) == 1:
        rest = prod(size for size in shape if size != -1)
        if rest < 1 or x.numel % rest:
            raise IllTyped("reshape does not divide")
        shape[shape.index(-1)] = x.numel // rest
    if not shape or prod(shape) != x.numel or any(size < 1 for size in shape):
        raise IllTyped(f"reshape of {x.shape} to {tuple(shape)}")
    return like(x, shape)


def _draw_flatten(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    if rank < 2:
        return None
    start = draw.integer(0, rank - 2)
    return Params.of(start=start, end=draw.integer(start + 1, rank - 1))


def _flatten(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    start, end = axis(params.integer("start"), x.rank), axis(params.integer("end"), x.rank)
    if end < start:
        raise IllTyped("flatten ends before it starts")
    if not x.shape:
        return like(x, (1,))
    return like(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def _draw_unflatten(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    options = [(dim, factors(size)) for dim, size in enumerate(t.shape)]
    options = [(dim, found) for dim, found in options if found]
    if not options or t.rank > 4:
        return None
    dim, found = draw.choice(options)
    inner = draw.choice(found)
    return Params.of(dim=dim, sizes=(t.shape[dim] // inner, inner))


def _unflatten(args: Types, params: Params) -> Type:
    x, sizes = tensor(args[0]), params.integers("sizes")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or prod(sizes) != x.shape[dim] or any(size < 1 for size in sizes):
        raise IllTyped("unflatten does not divide")
    return like(x, (*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


def _same(args: Types, params: Params) -> Type:
    return tensor(args[0])


def _draw_expand(draw: Draw, x: Type) -> Params | None:
    shape = tensor(x).shape
    lead = (draw.choice((2, 3, 7, 8)),) if len(shape) < 4 and (1 not in shape or draw.chance(30)) else ()
    sizes = tuple(draw.choice((5, 1, 8, 16, 17)) if size == 1 else size for size in shape)
    return Params.of(shape=(*lead, *sizes)) if prod((*lead, *sizes)) <= 60_000 and (*lead, *sizes) != () else None


def _expand(args: Types, params: Params) -> Type:
    x, shape = tensor(args[0]), params.integers("shape")
    if any(size < 1 for size in shape) or not broadcasts_to(x.shape, shape):
        raise IllTyped(f"expand of {x.shape} to {shape}")
    return like(x, shape)


def _draw_some(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    if not rank:
        return None
    dims = tuple(dim for dim in range(rank) if draw.chance(50))
    return Params.of(dims=dims or (rank - 1,))


def _flip(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    axes(params.integers("dims"), x.rank)
    return x


def _draw_squeeze(draw: Draw, x: Type) -> Params | None:
    ones = [dim for dim, size in enumerate(tensor(x).shape) if size == 1]
    return Params.of(dim=draw.choice(ones)) if ones else None


def _squeeze(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or x.shape[dim] != 1:
        raise IllTyped("squeeze of a dim that is not 1")
    return like(x, (*x.shape[:dim], *x.shape[dim + 1 :]))


def _draw_unsqueeze(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    return Params.of(dim=draw.integer(-1, rank)) if rank < 5 else None


def _unsqueeze(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    dim = axis(params.integer("dim"), x.rank + 1)
    return like(x, (*x.shape[:dim], 1, *x.shape[dim:]))


def _draw_roll(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    return Params.of(shift=draw.choice((1, -1, 2, 5)), dim=draw_dim(draw, rank)) if rank else None


def _roll(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    params.integer("shift")
    axis(params.integer("dim"), x.rank)
    if not x.shape:
        raise IllTyped("roll of a 0-d tensor")
    return x


def _draw_repeat(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if t.numel > 10_000 or not t.rank:
        return None
    return Params.of(times=tuple(draw.choice((1, 2, 3)) for _ in t.shape))


def _repeat(args: Types, params: Params) -> Type:
    x, times = tensor(args[0]), params.integers("times")
    if len(times) != x.rank or any(k < 1 for k in times):
        raise IllTyped("repeat names every dim")
    return like(x, (size * k for size, k in zip(x.shape, times, strict=True)))


def _draw_repeat_interleave(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    return Params.of(times=draw.choice((2, 3)), dim=draw_dim(draw, t.rank)) if t.rank and t.numel < 10_000 else None


def _repeat_interleave(args: Types, params: Params) -> Type:
    x, times = tensor(args[0]), params.integer("times")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or times < 1:
        raise IllTyped("repeat_interleave needs a dim and a positive count")
    return like(x, (*x.shape[:dim], x.shape[dim] * times, *x.shape[dim + 1 :]))


def _draw_unfold(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if not 0 < t.rank < 5:
        return None
    dim = draw.integer(0, t.rank - 1)
    size = draw.choice((2, 3, 1))
    return (
        Params.of(dim=dim, size=size, step=draw.choice((1, 2))) if t.shape[dim] >= size and t.numel < 20_000 else None
    )


def _unfold(args: Types, params: Params) -> Type:
    x, size, step = tensor(args[0]), params.integer("size"), params.integer("step")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or not 1 <= size <= x.shape[dim] or step < 1:
        raise IllTyped("unfold's window does not fit")
    return like(x, (*x.shape[:dim], (x.shape[dim] - size) // step + 1, *x.shape[dim + 1 :], size))


def permute_op(
    name: str,
    template: str,
    infer: Infer,
    weight: int,
    draw: Callable[[Draw, Type], Params | None] | None = None,
    traits: frozenset[Trait] = VIEW,
    takes: tuple[Slot, ...] = (slots.anything(),),
    grows: Grows = same_size,
) -> OpSpec:
    return OpSpec(
        name=name,
        family=Family.PERMUTES,
        template=template,
        slots=takes,
        infer=infer,
        traits=traits,
        grows=grows,
        weight=weight,
        **({} if draw is None else {"draw": draw}),
    )


MATRIX = (slots.anything(rank=2),)

OPS: Registry = (
    permute_op("permute", "{x}.permute({*dims})", _permute, 14, _draw_permute, takes=MATRIX),
    permute_op("transpose", "{x}.transpose({dim0}, {dim1})", _transpose, 10, _draw_two_dims, takes=MATRIX),
    permute_op("movedim", "{x}.movedim({dim0}, {dim1})", _movedim, 4, _draw_two_dims, takes=MATRIX),
    permute_op("mT", "{x}.mT", _matrix_transpose, 2, takes=MATRIX),
    permute_op("reshape", "{x}.reshape({*shape})", _reshape, 14, _draw_reshape),
    permute_op("view", "{x}.contiguous().view({*shape})", _reshape, 4, _draw_reshape),
    permute_op("flatten", "{x}.flatten({start}, {end})", _flatten, 5, _draw_flatten, takes=MATRIX),
    permute_op("unflatten", "{x}.unflatten({dim}, {sizes})", _unflatten, 6, _draw_unflatten),
    permute_op("contiguous", "{x}.contiguous()", _same, 4),
    permute_op("clone", "{x}.clone()", _same, 3, traits=EXACT),
    permute_op("clone_contiguous", "{x}.clone(memory_format=torch.contiguous_format)", _same, 5, traits=EXACT),
    permute_op("expand", "{x}.expand({*shape})", _expand, 5, _draw_expand, OVERLAPPING),
    permute_op("flip", "{x}.flip({dims})", _flip, 4, _draw_some, EXACT),
    permute_op("squeeze", "{x}.squeeze({dim})", _squeeze, 3, _draw_squeeze),
    permute_op("unsqueeze", "{x}.unsqueeze({dim})", _unsqueeze, 5, _draw_unsqueeze),
    permute_op("roll", "{x}.roll({shift}, {dim})", _roll, 2, _draw_roll, EXACT),
    permute_op("repeat", "{x}.repeat({*times})", _repeat, 2, _draw_repeat, EXACT),
    permute_op(
        "repeat_interleave",
        "{x}.repeat_interleave({times}, {dim})",
        _repeat_interleave,
        1,
        _draw_repeat_interleave,
        EXACT,
    ),
    permute_op("unfold", "{x}.unfold({dim}, {size}, {step})", _unfold, 1, _draw_unfold, OVERLAPPING),
)
