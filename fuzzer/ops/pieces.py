"""Parts of tensors, and tensors put together: slices, chunks, selections, pads, concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzer.ops import slots
from fuzzer.ops.permutes import MATRIX, Infer, permute_op
from fuzzer.ops.pointwise import EXACT
from fuzzer.ops.reductions import one_dim
from fuzzer.ops.rules import axis, fits_dtype, high_of, like, make, promote, tensor, widest
from fuzzer.ops.spec import Draw, IllTyped, Params, Registry, Types
from fuzzer.program import TensorType, Type


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


def _pad_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    return max(sizes[0], abs(float(params.number("k"))))


TWO = (slots.anything(), slots.shaped("y", _other_along))


OPS: Registry = (
    permute_op("cat", "torch.cat(({x}, {y}), {dim})", _cat, 5, one_dim, EXACT, TWO),
    permute_op("stack", "torch.stack(({x}, {y}), {dim})", _stack, 3, _draw_stack, EXACT, TWO),
    permute_op("chunk", "{x}.chunk({chunks}, {dim})[{k}]", _chunk, 3, _draw_chunk),
    permute_op("split", "{x}.split({step}, {dim})[{k}]", _split, 3, _draw_split),
    permute_op("select", "{x}.select({dim}, {k})", _select, 3, _draw_select),
    permute_op("item_0", "{x}[{k}]", _item_at(0), 3, _draw_item_at(0)),
    permute_op("item_1", "{x}[:, {k}]", _item_at(1), 2, _draw_item_at(1), takes=MATRIX),
    permute_op("narrow", "{x}.narrow({dim}, {start}, {size})", _narrow, 3, _draw_narrow),
    permute_op("slice_0", "{x}[{start}::{step}]", _slice(0), 5, _draw_slice(0)),
    permute_op("slice_1", "{x}[:, {start}::{step}]", _slice(1), 4, _draw_slice(1), takes=MATRIX),
    permute_op("slice_last", "{x}[..., {start}::{step}]", _slice(-1), 5, _draw_slice(-1)),
    permute_op("diagonal", "{x}.diagonal()", _diagonal, 1, _draw_diagonal, takes=MATRIX),
    permute_op("pad", "torch.nn.functional.pad({x}, {pads}, value={k})", _pad, 4, _draw_pad, EXACT, grows=_pad_size),
)
