"""Inputs: shapes by size class, dtypes, value regimes, and layouts in memory."""

from __future__ import annotations

from math import prod

from fuzzer.generators.draw import Choices
from fuzzer.generators.policy import Policy, SizeClass
from fuzzer.input_source import regimes_of
from fuzzer.program import DType, InputSpec, Layout, LayoutKind, Regime, TensorType

_SMALL = (4, 3, 2, 5, 6, 7, 8, 10, 12, 1)
_BOUNDARY = (8, 7, 9, 16, 15, 17, 32, 31, 33, 1, 2, 3, 64, 63, 65, 127, 129)
_INNER = (4, 3, 8, 2, 6, 16, 5, 7, 12)
_PIECES = (96, 64, 300, 48, 128, 100, 240, 33, 192, 256)
_LONG = (2048, 4096, 8192, 2049, 3000, 4100, 5000, 12288, 16384)
_REST = (1, 3, 8, 16, 33, 64, 7, 96, 17, 32, 128, 5)
_LONG_LIMIT, _LIMIT = 800_000, 40_000


def draw_shape(draw: Choices, sizes: SizeClass) -> tuple[int, ...]:
    """The shape of a program's main tensor."""
    match sizes:
        case SizeClass.SMALL:
            rank = draw.weighted(((2, 35), (3, 40), (1, 8), (4, 17)))
            shape = [draw.choice(_SMALL) for _ in range(rank)]
        case SizeClass.BOUNDARY:
            rank = draw.weighted(((2, 50), (3, 30), (1, 15), (4, 5)))
            shape = [draw.choice(_BOUNDARY) for _ in range(rank)]
        case SizeClass.SPLIT:
            whole = draw.choice(_INNER) * draw.choice(_PIECES)
            rest = draw.choice(_SMALL + _BOUNDARY)
            shape = [rest, whole] if draw.chance(75) else [whole, rest]
            if draw.chance(20):
                shape = [draw.choice(_INNER[:4]), *shape]
        case SizeClass.LONG:
            return _long_shape(draw)
    return _fitting(shape, _LIMIT)


def _long_shape(draw: Choices) -> tuple[int, ...]:
    """At least 2,048 elements to fold, over one dim or several, and no more than that beside them."""
    long = draw.choice(_LONG)
    rest = draw.choice(_REST)
    kind = draw.integer(0, 5)
    if kind == 5:
        # The whole tensor folds into one element.
        side = draw.choice((64, 48, 50, 96, 128))
        return (side, side) if draw.chance(60) else (draw.choice((4, 3, 8)), side, 16)
    while long * rest > _LONG_LIMIT:
        rest = max(rest // 2, 1)
    if kind >= 3:
        # The long space is split over two dims.
        outer = draw.choice((4, 8, 2, 3, 16))
        inner = max(2048 // outer, long // outer)
        pair = (outer, inner)
        return (*pair, rest) if draw.chance(75) else (rest, *pair)
    return (long, rest) if draw.chance(65) else (rest, long)


def _fitting(shape: list[int], limit: int) -> tuple[int, ...]:
    while prod(shape) > limit:
        where = shape.index(max(shape))
        shape[where] = max(shape[where] // 2, 1)
    return tuple(shape)


def draw_dtype(draw: Choices, policy: Policy) -> DType:
    """The policy's dtype, or now and then another."""
    if not draw.chance(policy.mixed):
        return policy.dtype
    return draw.choice(
        (DType.FLOAT32, DType.INT64, DType.BOOL, DType.FLOAT16, DType.INT32, DType.BFLOAT16, DType.FLOAT64)
    )


def draw_regime(draw: Choices, policy: Policy, wanted: TensorType) -> Regime:
    """A regime that suits the type: the policy's where it can."""
    options = regimes_of(wanted.dtype, wanted.high is not None)
    if wanted.dtype is DType.BOOL:
        return draw.weighted(((Regime.NORMAL, 70), (Regime.SPARSE, 24), (Regime.ZEROS, 3), (Regime.ONES, 3)))
    if wanted.high is not None:
        return Regime.INDEX
    if policy.regime in options and not draw.chance(6):
        unfit = policy.regime is Regime.IOTA and wanted.numel > 2048
        return Regime.EXACT if unfit else policy.regime
    if wanted.dtype.is_integer:
        return Regime.EXACT
    return draw.weighted(((Regime.NORMAL, 80), (Regime.EXACT, 10), (Regime.ZEROS, 4), (Regime.ONES, 6)))


def draw_layout(draw: Choices, policy: Policy, wanted: TensorType, regime: Regime) -> Layout:
    """Contiguous, mostly; otherwise permuted, strided or expanded."""
    shape = wanted.shape
    if not shape or regime is Regime.LENGTHS or not draw.chance(policy.strided):
        return Layout()
    kind = draw.weighted(((LayoutKind.PERMUTED, 45), (LayoutKind.STRIDED, 35), (LayoutKind.EXPANDED, 20)))
    if kind is LayoutKind.PERMUTED and len(shape) > 1:
        dims = list(range(len(shape)))
        first = draw.integer(0, len(dims) - 2)
        second = draw.integer(first + 1, len(dims) - 1)
        dims[first], dims[second] = dims[second], dims[first]
        return Layout(kind=kind, dims=tuple(dims))
    if kind is LayoutKind.EXPANDED and regime not in (Regime.UNIQUE, Regime.IOTA):
        dims = [dim for dim, size in enumerate(shape) if size > 1]
        if dims:
            return Layout(kind=kind, dims=(draw.choice(dims),))
    if regime is Regime.UNIQUE or (regime is Regime.IOTA and wanted.numel > 1000) or wanted.numel > 500_000:
        return Layout()
    dim = draw.integer(0, len(shape) - 1)
    offset, step = draw.choice(((0, 2), (1, 1), (1, 2), (3, 1), (2, 3)))
    return Layout(kind=LayoutKind.STRIDED, dims=(dim,), offset=offset, step=step)


def draw_input(draw: Choices, policy: Policy, name: str, wanted: TensorType, regime: Regime | None) -> InputSpec:
    """An input of this type: its regime unless given, its layout, and its seed."""
    chosen = draw_regime(draw, policy, wanted) if regime is None else regime
    return InputSpec(
        name=name,
        type=wanted,
        regime=chosen,
        layout=draw_layout(draw, policy, wanted, chosen),
        seed=draw.integer(0, 255) * 4,
    )
