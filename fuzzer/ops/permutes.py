"""Changes of order, shape and extent: permutes, reshapes across permuted dims, slices, flips, pads, concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fuzzer.ops import slots
from fuzzer.ops.pointwise import EXACT
from fuzzer.ops.reductions import draw_dim, one_dim
from fuzzer.ops.rules import axes, axis, broadcasts_to, fits_dtype, high_of, like, make, promote, tensor, widest
from fuzzer.ops.spec import Draw, Family, Grows, IllTyped, OpSpec, Params, Registry, Slot, Trait, Types, same_size
from fuzzer.program import TensorType, Type

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


def _other_along(seen: Types, params: Params) -> tuple[int, ...] | None:
    return tensor(seen[0]).shape


def _cat(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[1])
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or x.rank != y.rank or x.shape[:dim] != y.shape[:dim] or x.shape[dim + 1 :] != y.shape[dim + 1 :]:
        raise IllTyped("cat of shapes that differ elsewhere")
    size = x.shape[dim] + y.shape[dim]
    return make((*x.shape[:dim], size, *x.shape[dim + 1 :]), promote(x, y), widest(x, y))


def _draw_stack(draw: Draw, x: Type) -> Params | None:
    rank = tensor(x).rank
    return Params.of(dim=draw.integer(-1, rank)) if rank < 5 else None


def _stack(args: Types, params: Params) -> Type:
    x, y = tensor(args[0]), tensor(args[1])
    dim = axis(params.integer("dim"), x.rank + 1)
    if x.shape != y.shape:
        raise IllTyped("stack of two shapes")
    return make((*x.shape[:dim], 2, *x.shape[dim:]), promote(x, y), widest(x, y))


def _pieces(size: int, step: int) -> int:
    return -(-size // step)


def _draw_chunk(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    dims = [dim for dim, size in enumerate(t.shape) if size > 1]
    if not dims:
        return None
    dim = draw.choice(dims)
    chunks = draw.choice((2, 3))
    count = _pieces(t.shape[dim], _pieces(t.shape[dim], chunks))
    return Params.of(chunks=chunks, dim=dim, k=draw.integer(0, count - 1))


def _piece(x: TensorType, dim: int, step: int, k: int) -> Type:
    if not x.shape or step < 1 or not 0 <= k < _pieces(x.shape[dim], step):
        raise IllTyped("there is no such piece")
    return like(x, (*x.shape[:dim], min(step, x.shape[dim] - k * step), *x.shape[dim + 1 :]))


def _chunk(args: Types, params: Params) -> Type:
    x, chunks = tensor(args[0]), params.integer("chunks")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or chunks < 1:
        raise IllTyped("chunk of a 0-d tensor")
    return _piece(x, dim, _pieces(x.shape[dim], chunks), params.integer("k"))


def _draw_split(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    dims = [dim for dim, size in enumerate(t.shape) if size > 1]
    if not dims:
        return None
    dim = draw.choice(dims)
    step = draw.integer(1, min(t.shape[dim] - 1, 17))
    return Params.of(step=step, dim=dim, k=draw.integer(0, min(_pieces(t.shape[dim], step), 4) - 1))


def _split(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    return _piece(x, axis(params.integer("dim"), x.rank), params.integer("step"), params.integer("k"))


def _draw_select(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if not t.shape:
        return None
    dim = draw.integer(0, t.rank - 1)
    return Params.of(dim=dim, k=draw.integer(0, t.shape[dim] - 1) if draw.chance(70) else -1)


def _select_at(x: TensorType, dim: int, k: int) -> Type:
    if not x.shape or not -x.shape[dim] <= k < x.shape[dim]:
        raise IllTyped("selects outside the dim")
    return like(x, (*x.shape[:dim], *x.shape[dim + 1 :]))


def _select(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    return _select_at(x, axis(params.integer("dim"), x.rank), params.integer("k"))


def _draw_item_at(dim: int) -> Callable[[Draw, Type], Params | None]:
    def draw_k(draw: Draw, x: Type) -> Params | None:
        shape = tensor(x).shape
        if len(shape) <= dim:
            return None
        return Params.of(k=draw.integer(0, shape[dim] - 1) if draw.chance(70) else -1)

    return draw_k


def _item_at(dim: int) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x = tensor(args[0])
        return _select_at(x, axis(dim, x.rank), params.integer("k"))

    return infer


def _draw_narrow(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    dims = [dim for dim, size in enumerate(t.shape) if size > 1]
    if not dims:
        return None
    dim = draw.choice(dims)
    start = draw.integer(0, t.shape[dim] - 1)
    return Params.of(dim=dim, start=start, size=draw.integer(1, t.shape[dim] - start))


def _narrow(args: Types, params: Params) -> Type:
    x, start, size = tensor(args[0]), params.integer("start"), params.integer("size")
    dim = axis(params.integer("dim"), x.rank)
    if not x.shape or start < 0 or size < 1 or start + size > x.shape[dim]:
        raise IllTyped("narrow outside the dim")
    return like(x, (*x.shape[:dim], size, *x.shape[dim + 1 :]))


def _draw_slice(dim: int) -> Callable[[Draw, Type], Params | None]:
    def draw_bounds(draw: Draw, x: Type) -> Params | None:
        t = tensor(x)
        if not t.shape or t.rank <= dim or t.shape[dim] < 2:
            return None
        step = draw.choice((2, 1, 3))
        return Params.of(start=draw.integer(1 if step == 1 else 0, min(t.shape[dim] - 1, 5)), step=step)

    return draw_bounds


def _slice(dim: int) -> Infer:
    def infer(args: Types, params: Params) -> Type:
        x, start, step = tensor(args[0]), params.integer("start"), params.integer("step")
        where = axis(dim, x.rank)
        if not x.shape or not 0 <= start < x.shape[where] or step < 1:
            raise IllTyped("a slice outside the dim")
        return like(x, (*x.shape[:where], len(range(start, x.shape[where], step)), *x.shape[where + 1 :]))

    return infer


def _draw_diagonal(draw: Draw, x: Type) -> Params | None:
    return Params() if tensor(x).rank > 1 else None


def _diagonal(args: Types, params: Params) -> Type:
    x = tensor(args[0])
    if x.rank < 2:
        raise IllTyped("diagonal needs two dims")
    return like(x, (*x.shape[2:], min(x.shape[:2])))


def _draw_pad(draw: Draw, x: Type) -> Params | None:
    t = tensor(x)
    if not t.rank:
        return None
    dims = draw.integer(1, min(t.rank, 2))
    pads = tuple(draw.choice((1, 0, 2, 3, -1)) for _ in range(2 * dims))
    if not any(pads) or any(t.shape[-1 - k] + pads[2 * k] + pads[2 * k + 1] < 1 for k in range(dims)):
        pads = (1, 0) * dims
    whole = not t.dtype.is_floating or draw.chance(50)
    return Params.of(pads=pads, k=draw.choice((0, 1)) if whole else draw.choice((0.5, -1.0)))


def _pad(args: Types, params: Params) -> Type:
    x, pads, k = tensor(args[0]), params.integers("pads"), params.number("k")
    if not pads or len(pads) % 2 or len(pads) // 2 > x.rank or not any(pads):
        raise IllTyped("pad takes two numbers a dim")
    if isinstance(k, bool) or not (fits_dtype(k, x.dtype) or k in (0, 1)):
        raise IllTyped(f"pads {x.dtype} with {k!r}")
    shape = list(x.shape)
    for number, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        where = len(shape) - 1 - number
        size = shape[where]
        if size + min(before, 0) < 1 or size + min(after, 0) < 1 or size + before + after < 1:
            raise IllTyped("a negative pad that removes everything")
        shape[where] = size + before + after
    return make(shape, x.dtype, widest(x, k) if high_of(x) is not None else None)


def _op(
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


def _pad_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(sizes[0], abs(float(params.number("k"))))


_MATRIX = (slots.anything(rank=2),)
_TWO = (slots.anything(), slots.shaped("y", _other_along))

OPS: Registry = (
    _op("permute", "{x}.permute({*dims})", _permute, 14, _draw_permute, takes=_MATRIX),
    _op("transpose", "{x}.transpose({dim0}, {dim1})", _transpose, 10, _draw_two_dims, takes=_MATRIX),
    _op("movedim", "{x}.movedim({dim0}, {dim1})", _movedim, 4, _draw_two_dims, takes=_MATRIX),
    _op("mT", "{x}.mT", _matrix_transpose, 2, takes=_MATRIX),
    _op("reshape", "{x}.reshape({*shape})", _reshape, 14, _draw_reshape),
    _op("view", "{x}.contiguous().view({*shape})", _reshape, 4, _draw_reshape),
    _op("flatten", "{x}.flatten({start}, {end})", _flatten, 5, _draw_flatten, takes=_MATRIX),
    _op("unflatten", "{x}.unflatten({dim}, {sizes})", _unflatten, 6, _draw_unflatten),
    _op("contiguous", "{x}.contiguous()", _same, 4),
    _op("clone", "{x}.clone()", _same, 3, traits=EXACT),
    _op("clone_contiguous", "{x}.clone(memory_format=torch.contiguous_format)", _same, 5, traits=EXACT),
    _op("expand", "{x}.expand({*shape})", _expand, 5, _draw_expand, OVERLAPPING),
    _op("flip", "{x}.flip({dims})", _flip, 4, _draw_some, EXACT),
    _op("squeeze", "{x}.squeeze({dim})", _squeeze, 3, _draw_squeeze),
    _op("unsqueeze", "{x}.unsqueeze({dim})", _unsqueeze, 5, _draw_unsqueeze),
    _op("roll", "{x}.roll({shift}, {dim})", _roll, 2, _draw_roll, EXACT),
    _op("repeat", "{x}.repeat({*times})", _repeat, 2, _draw_repeat, EXACT),
    _op(
        "repeat_interleave",
        "{x}.repeat_interleave({times}, {dim})",
        _repeat_interleave,
        1,
        _draw_repeat_interleave,
        EXACT,
    ),
    _op("unfold", "{x}.unfold({dim}, {size}, {step})", _unfold, 1, _draw_unfold, OVERLAPPING),
    _op("cat", "torch.cat(({x}, {y}), {dim})", _cat, 5, one_dim, EXACT, _TWO),
    _op("stack", "torch.stack(({x}, {y}), {dim})", _stack, 3, _draw_stack, EXACT, _TWO),
    _op("chunk", "{x}.chunk({chunks}, {dim})[{k}]", _chunk, 3, _draw_chunk),
    _op("split", "{x}.split({step}, {dim})[{k}]", _split, 3, _draw_split),
    _op("select", "{x}.select({dim}, {k})", _select, 3, _draw_select),
    _op("item_0", "{x}[{k}]", _item_at(0), 3, _draw_item_at(0)),
    _op("item_1", "{x}[:, {k}]", _item_at(1), 2, _draw_item_at(1), takes=_MATRIX),
    _op("narrow", "{x}.narrow({dim}, {start}, {size})", _narrow, 3, _draw_narrow),
    _op("slice_0", "{x}[{start}::{step}]", _slice(0), 5, _draw_slice(0)),
    _op("slice_1", "{x}[:, {start}::{step}]", _slice(1), 4, _draw_slice(1), takes=_MATRIX),
    _op("slice_last", "{x}[..., {start}::{step}]", _slice(-1), 5, _draw_slice(-1)),
    _op("diagonal", "{x}.diagonal()", _diagonal, 1, _draw_diagonal, takes=_MATRIX),
    _op("pad", "torch.nn.functional.pad({x}, {pads}, value={k})", _pad, 4, _draw_pad, EXACT, grows=_pad_size),
)
