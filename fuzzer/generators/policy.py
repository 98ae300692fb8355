"""Swarm testing: before a program grows, draw what kind of program it will be.

A program that may do everything does a little of everything, and rarely what a defect needs several times over. So
each program first draws a few families, a size class, a value regime and so on, and keeps to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuzzer.backports import StrEnum
from fuzzer.generators.draw import Choices
from fuzzer.ops import Family
from fuzzer.program import DType, Mode, Regime


class SizeClass(StrEnum):
    """How large the shapes of a program are."""

    SMALL = "small"
    BOUNDARY = "boundary"
    """Just at, below and above powers of two."""
    SPLIT = "split"
    """One large dim with divisors: made to be split, merged and permuted."""
    LONG = "long"
    """At least 2,048 elements fold into one, and the rest is no larger: where reductions are split over cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What kind of program to grow."""

    families: tuple[tuple[Family, int], ...]
    """Family and weight of single statements."""
    idioms: int
    """Percentage of steps that are idioms, several statements that belong together."""
    sizes: SizeClass
    dtype: DType
    """The dtype of most tensors."""
    mixed: int
    """Percentage of inputs of another dtype."""
    regime: Regime
    """How most floating inputs are drawn."""
    strided: int
    """Percentage of inputs that are not contiguous."""
    steps: int
    late: int
    """Percentage of arguments that are taken from the latest values."""
    fresh: int
    """Percentage of arguments that are new inputs although a live value would fit."""
    in_place: int
    """Percentage of in-place statements that are kept."""
    outputs: int
    mode: Mode

    @property
    def largest(self) -> int:
        """No value holds more elements."""
        return 1_600_000 if self.sizes is SizeClass.LONG else 50_000


_DTYPES = (
    (DType.FLOAT32, 66),
    (DType.INT64, 16),
    (DType.FLOAT16, 7),
    (DType.BFLOAT16, 5),
    (DType.INT32, 4),
    (DType.FLOAT64, 2),
)
_REGIMES = (
    (Regime.NORMAL, 52),
    (Regime.EXACT, 34),
    (Regime.WIDE, 4),
    (Regime.SPECIALS, 4),
    (Regime.SPARSE, 3),
    (Regime.IOTA, 3),
)
_SIZES = ((SizeClass.SMALL, 32), (SizeClass.BOUNDARY, 22), (SizeClass.SPLIT, 20), (SizeClass.LONG, 26))
_STEPS = ((3, 14), (4, 14), (5, 14), (2, 8), (6, 10), (8, 14), (11, 8), (14, 5), (18, 3))
_TILED = (("triton.tile_reductions", True), ("triton.prefer_nd_tiling", True))


def draw_policy(draw: Choices, families: Sequence[Family]) -> Policy:
    """A policy for one program; only these families, and pointwise arithmetic, take part."""
    sizes = draw.weighted(_SIZES)
    # Four in five programs leave some families out, and one in three is all about one of them.
    if draw.chance(33):
        chosen = [draw.choice(families)]
    else:
        chosen = [family for family in families if draw.chance(60)] or [draw.choice(families)]
    idioms = draw.choice((30, 15, 55, 0))
    # What is long is for reductions to fold, and what divides well is for views to split.
    wanted = {SizeClass.LONG: Family.REDUCTIONS, SizeClass.SPLIT: Family.PERMUTES}.get(sizes)
    if wanted is not None:
        chosen = [family for family in families if family in chosen or family is wanted]
        idioms = max(idioms, 30)
    weights = [(Family.POINTWISE, draw.choice((4, 2, 7)))] + [(one, draw.choice((5, 2, 9))) for one in chosen]
    dtype = draw.weighted(_DTYPES)
    training = dtype.is_floating and draw.chance(22 if sizes is SizeClass.LONG else 14)
    mode = Mode(
        training=training,
        dynamic=not training and draw.chance(6),
        calls=2 if draw.chance(4) else 1,
        config=_TILED if draw.chance(5) else (),
    )
    return Policy(
        families=tuple(weights),
        idioms=idioms,
        sizes=sizes,
        dtype=dtype,
        mixed=draw.choice((8, 0, 30)),
        regime=draw.weighted(_REGIMES),
        strided=draw.choice((10, 0, 40)),
        steps=draw.weighted(_STEPS[:5] if sizes is SizeClass.LONG else _STEPS),
        late=draw.choice((60, 80, 30)),
        fresh=draw.choice((12, 5, 25)),
        in_place=draw.choice((100, 0, 60)),
        outputs=draw.weighted(((2, 34), (1, 30), (3, 22), (4, 14))),
        mode=mode,
    )
