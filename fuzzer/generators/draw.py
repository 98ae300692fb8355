"""Choices drawn from Hypothesis, through strategies that are made once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")


@cache
def _integers(low: int, high: int) -> SearchStrategy[int]:
    return st.integers(low, high)


class Choices:
    """The `Draw` of `fuzzer.ops.spec` on top of Hypothesis' draw function."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low if low == high else self._draw(_integers(low, high))

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True that often."""
        if percent <= 0:
            return False
        # 128 values fit seven bits, so that no draw is rejected and repeated.
        return self.integer(0, 127) >= 128 - round(percent * 1.28)

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        """One of the options, by weight; at least one weight is positive."""
        sums = list(accumulate(weight for _, weight in options))
        return options[bisect_right(sums, self.integer(0, sums[-1] - 1))][0]
