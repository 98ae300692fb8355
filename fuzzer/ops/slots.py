"""The kinds of arguments that operators take: which live values fit, and how to make one that does."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from fuzzer.ops.rules import axis, broadcast, broadcasts_to, size_at
from fuzzer.ops.spec import Draw, Fits, IllTyped, Params, Slot, Source, Types, Wanted
from fuzzer.program import DType, Regime, ScalarType, TensorType, Type

Shape = Callable[[Types, Params], "tuple[int, ...] | None"]
"""The shape that an argument must have, given the earlier ones; None where there is none."""


def _of(accepts: Callable[[DType], bool], rank: int) -> Fits:
    def fits(value: Type, seen: Types, params: Params) -> bool:
        return isinstance(value, TensorType) and accepts(value.dtype) and value.rank >= rank

    return fits


def anything(name: str = "x", rank: int = 0) -> Slot:
    """A tensor of any dtype."""
    return Slot(name=name, fits=_of(lambda dtype: True, rank))


def numeric(name: str = "x", rank: int = 0) -> Slot:
    """A tensor of numbers."""
    return Slot(name=name, fits=_of(lambda dtype: dtype is not DType.BOOL, rank))


def floats(name: str = "x", rank: int = 0) -> Slot:
    """A floating tensor."""
    return Slot(name=name, fits=_of(lambda dtype: dtype.is_floating, rank))


def integers(name: str = "x", rank: int = 0) -> Slot:
    """An integer tensor."""
    return Slot(name=name, fits=_of(lambda dtype: dtype.is_integer, rank))


def bools(name: str = "x", rank: int = 0) -> Slot:
    """A bool tensor."""
    return Slot(name=name, fits=_of(lambda dtype: dtype is DType.BOOL, rank))


def one_element(name: str = "x") -> Slot:
    """A tensor of any dtype with exactly one element."""
    return Slot(name=name, fits=lambda value, seen, params: isinstance(value, TensorType) and value.numel == 1)


def _first(seen: Types) -> TensorType:
    for value in seen:
        if isinstance(value, TensorType):
            return value
    raise IllTyped("no tensor among the earlier arguments")


def _thinner(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape itself, mostly, or one that broadcasts to it: some dims 1, or only the last ones, or 0-d."""
    if not shape or draw.chance(55):
        return shape
    start = draw.integer(0, len(shape))
    return tuple(1 if draw.chance(30) else size for size in shape[start:])


def partner(name: str = "y", accepts: Callable[[DType], bool] = lambda dtype: dtype is not DType.BOOL) -> Slot:
    """A tensor that broadcasts with the first one, either way, without growing the result out of hand."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        if not isinstance(value, TensorType) or not accepts(value.dtype):
            return False
        x = _first(seen)
        if value.shape == x.shape:
            return True
        try:
            shape = broadcast(x.shape, value.shape)
        except IllTyped:
            return False
        return prod(shape) <= max(4 * max(x.numel, value.numel), 64) and prod(shape) <= 1_600_000

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        dtype = x.dtype if accepts(x.dtype) else DType.FLOAT32
        if draw.chance(12):
            dtype = draw.choice(
                [one for one in (DType.FLOAT32, DType.FLOAT16, DType.INT64, DType.BFLOAT16) if accepts(one)] or [dtype]
            )
        return Wanted(TensorType(shape=_thinner(draw, x.shape), dtype=dtype))

    return Slot(name=name, fits=fits, fresh=fresh)


def narrow_partner(name: str = "y", same_kind: bool = False) -> Slot:
    """A tensor of numbers that broadcasts to the first one's shape and, on request, casts to its dtype safely."""

    def accepts(x: TensorType, dtype: DType) -> bool:
        if dtype is DType.BOOL:
            return False
        return not same_kind or dtype is x.dtype or (x.dtype.is_floating and not dtype.is_integer)

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x = _first(seen)
        return isinstance(value, TensorType) and accepts(x, value.dtype) and broadcasts_to(value.shape, x.shape)

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        return Wanted(TensorType(shape=_thinner(draw, x.shape), dtype=x.dtype)) if x.dtype is not DType.BOOL else None

    return Slot(name=name, fits=fits, fresh=fresh)


def mask(name: str = "mask") -> Slot:
    """A bool tensor that broadcasts to the first tensor's shape."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        return (
            isinstance(value, TensorType)
            and value.dtype is DType.BOOL
            and broadcasts_to(value.shape, _first(seen).shape)
        )

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        return Wanted(TensorType(shape=_thinner(draw, _first(seen).shape), dtype=DType.BOOL))

    return Slot(name=name, fits=fits, fresh=fresh)


def leading_mask(name: str = "mask") -> Slot:
    """A bool tensor whose shape is the first tensor's, or its first dims."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        if not isinstance(value, TensorType) or value.dtype is not DType.BOOL or value.rank == 0:
            return False
        return _first(seen).shape[: value.rank] == value.shape

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        shape = _first(seen).shape
        return Wanted(TensorType(shape=shape[: draw.integer(1, len(shape))], dtype=DType.BOOL)) if shape else None

    return Slot(name=name, fits=fits, fresh=fresh)


def zero_d(name: str = "y") -> Slot:
    """A 0-d tensor of the first one's dtype."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        return isinstance(value, TensorType) and value.shape == () and value.dtype is _first(seen).dtype

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        return Wanted(TensorType(shape=(), dtype=_first(seen).dtype))

    return Slot(name=name, fits=fits, fresh=fresh)


def shaped(name: str, shape_of: Shape, flexible_dtype: bool = False) -> Slot:
    """A tensor of exactly the shape that the rule says, and of the first one's dtype unless it may differ."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        if not isinstance(value, TensorType) or value.shape != shape_of(seen, params):
            return False
        return flexible_dtype or value.dtype is _first(seen).dtype

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        shape = shape_of(seen, params)
        return None if shape is None else Wanted(TensorType(shape=shape, dtype=_first(seen).dtype))

    return Slot(name=name, fits=fits, fresh=fresh)


Place = Callable[[Params, int], int]
"""Which dim of a tensor of that rank an index addresses."""


def by_param(params: Params, rank: int) -> int:
    """The dim that the parameter `dim` names."""
    return axis(params.integer("dim"), rank)


def at(dim: int) -> Place:
    """A fixed dim."""
    return lambda params, rank: axis(dim, rank)


def _index_fits(value: Type, size: int) -> bool:
    if not isinstance(value, TensorType) or value.dtype is not DType.INT64:
        return False
    return value.high is not None and value.high <= size


def index(name: str, place: Place, rank: tuple[int, int] = (1, 2)) -> Slot:
    """An int64 tensor, of a rank in that range, whose values are positions along a dim of the first tensor."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x = _first(seen)
        if not isinstance(value, TensorType) or not rank[0] <= value.rank <= rank[1]:
            return False
        return _index_fits(value, size_at(x, place(params, x.rank))) and value.numel <= 4096

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        size = size_at(x, place(params, x.rank))
        sizes = (3, 1, 2, 4, 5, 7, 8, 9, 16, 17, min(size, 512))
        shape = tuple(draw.choice(sizes) for _ in range(draw.integer(rank[0], rank[1])))
        return Wanted(TensorType(shape=shape, dtype=DType.INT64, high=size), Regime.INDEX)

    return Slot(name=name, fits=fits, fresh=fresh)


def index_beside(name: str, place: Place) -> Slot:
    """Another index that broadcasts with the one before it."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x, first = _first(seen), seen[-1]
        if not isinstance(value, TensorType) or not isinstance(first, TensorType):
            return False
        if value.shape != first.shape and not broadcasts_to(value.shape, first.shape):
            return False
        return _index_fits(value, size_at(x, place(params, x.rank)))

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x, first = _first(seen), seen[-1]
        if not isinstance(first, TensorType):
            return None
        size = size_at(x, place(params, x.rank))
        shape = _thinner(draw, first.shape)
        return Wanted(TensorType(shape=shape, dtype=DType.INT64, high=size), Regime.INDEX)

    return Slot(name=name, fits=fits, fresh=fresh)


def index_like(name: str, place: Place) -> Slot:
    """An int64 index of the first tensor's shape, but for the addressed dim: what gather and scatter take."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x = _first(seen)
        dim = place(params, x.rank)
        if not isinstance(value, TensorType) or value.rank != x.rank or not x.shape:
            return False
        if not _index_fits(value, x.shape[dim]):
            return False
        pairs = enumerate(zip(value.shape, x.shape, strict=True))
        return all(here == there for where, (here, there) in pairs if where != dim)

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        if not x.shape:
            return None
        dim = place(params, x.rank)
        count = draw.choice((x.shape[dim], 1, 2, 3, 5, 8))
        shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
        if prod(shape) > 50_000:
            return None
        return Wanted(TensorType(shape=shape, dtype=DType.INT64, high=x.shape[dim]), Regime.INDEX)

    return Slot(name=name, fits=fits, fresh=fresh)


def unique_index(name: str, place: Place) -> Slot:
    """A one-dimensional int64 input without repeats, whose values are positions along a dim of the first tensor."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x = _first(seen)
        if not isinstance(value, TensorType) or value.rank != 1:
            return False
        return _index_fits(value, size_at(x, place(params, x.rank)))

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        size = size_at(x, place(params, x.rank))
        count = draw.integer(1, min(size, 33))
        return Wanted(TensorType(shape=(count,), dtype=DType.INT64, high=size), Regime.UNIQUE)

    return Slot(name=name, fits=fits, fresh=fresh, source=Source.UNIQUE)


def row_index(name: str) -> Slot:
    """An int64 tensor with one position along dim 1 for each row of the first tensor."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x = _first(seen)
        return isinstance(value, TensorType) and value.shape == x.shape[:1] and _index_fits(value, x.shape[1])

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        return Wanted(TensorType(shape=x.shape[:1], dtype=DType.INT64, high=x.shape[1]), Regime.INDEX)

    return Slot(name=name, fits=fits, fresh=fresh)


def flat_index(name: str) -> Slot:
    """An int64 tensor of positions in the first tensor, counted over all dims."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        return _index_fits(value, _first(seen).numel)

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        shape = tuple(draw.choice((3, 1, 5, 8, 17)) for _ in range(draw.integer(1, 2)))
        return Wanted(TensorType(shape=shape, dtype=DType.INT64, high=_first(seen).numel), Regime.INDEX)

    return Slot(name=name, fits=fits, fresh=fresh)


def numbers_like(name: str) -> Slot:
    """A tensor of numbers, of any dtype, with the first one's shape."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        return isinstance(value, TensorType) and value.shape == _first(seen).shape and value.dtype is not DType.BOOL

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        return Wanted(TensorType(shape=_first(seen).shape, dtype=draw.choice((DType.INT64, DType.FLOAT32))))

    return Slot(name=name, fits=fits, fresh=fresh)


def lengths(name: str = "lengths", total: bool = True) -> Slot:
    """Sizes of a ragged batch: their sum is the first tensor's size along dim 0, or else their count is."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        x = _first(seen)
        if not isinstance(value, TensorType) or value.rank != 1 or value.high is None or not x.shape:
            return False
        if not total:
            return value.shape == x.shape[:1]
        return value.high == x.shape[0] + 1 and value.shape[0] <= 8

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        x = _first(seen)
        if not x.shape:
            return None
        if total:
            count, whole = draw.integer(1, min(x.shape[0], 5)), x.shape[0]
        else:
            count, whole = x.shape[0], x.shape[0] + draw.integer(0, 9)
        return Wanted(TensorType(shape=(count,), dtype=DType.INT64, high=whole + 1), Regime.LENGTHS)

    return Slot(name=name, fits=fits, fresh=fresh, source=Source.LENGTHS)


def scalar(name: str = "v", accepts: Callable[[DType], bool] = lambda dtype: True) -> Slot:
    """A Python number that left the graph."""
    return Slot(name=name, fits=lambda value, seen, params: isinstance(value, ScalarType) and accepts(value.dtype))


def flag(name: str = "flag") -> Slot:
    """A bool tensor of one element, used as a condition."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        return isinstance(value, TensorType) and value.numel == 1 and value.dtype is DType.BOOL

    return Slot(name=name, fits=fits)


def mask_like(name: str = "mask") -> Slot:
    """A bool tensor of the first tensor's shape."""

    def fits(value: Type, seen: Types, params: Params) -> bool:
        return isinstance(value, TensorType) and value.shape == _first(seen).shape and value.dtype is DType.BOOL

    def fresh(draw: Draw, seen: Types, params: Params) -> Wanted | None:
        return Wanted(TensorType(shape=_first(seen).shape, dtype=DType.BOOL))

    return Slot(name=name, fits=fits, fresh=fresh)


def short_list(draw: Draw, seen: Types, params: Params) -> Wanted | None:
    """A one-dimensional tensor of at most five numbers of the first tensor's dtype."""
    return Wanted(TensorType(shape=(draw.integer(1, 5),), dtype=_first(seen).dtype), Regime.EXACT)
