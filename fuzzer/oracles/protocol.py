"""What an oracle is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fuzzer.observation import Leaf, Observation, Observations
from fuzzer.verdict import Outcome, Verdict


class Oracle(Protocol):
    """Looks at everything that was seen of one program, from one point of view."""

    @property
    def name(self) -> str:
        """Appears in verdicts."""

    def judge(self, observations: Observations) -> Verdict:
        """Raises only for a fault of the fuzzer itself."""


GRAVITY = (Outcome.PASS, Outcome.EXCUSED, Outcome.INCONCLUSIVE, Outcome.BUG)
"""What may come of comparing values, the gravest last."""


def gravest(verdicts: Sequence[Verdict]) -> Verdict:
    """The first of the gravest verdicts: a BUG in one place is a BUG, whatever is excused in another."""
    return max(verdicts, key=lambda verdict: GRAVITY.index(verdict.outcome), default=Verdict(outcome=Outcome.PASS))


def completed(observations: Observations) -> tuple[Observation, ...]:
    """The eager runs that did not fail, the plain one on the CPU first."""
    return tuple(run for run in observations.eager if run.failure is None)


def by_path(leaves: Sequence[Leaf]) -> dict[str, Leaf]:
    return {leaf.path: leaf for leaf in leaves}
