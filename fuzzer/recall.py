"""Recall against known defects: what came of each trial, and the score of each defect over all its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

STAGES = ("reached", "triggered", "detected")
"""An edited statement ran; kernels, launches or results changed by it; an oracle said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one defect and one seed. Times are seconds from the start, or None for what did not happen."""

    slug: str
    seed: int
    programs: int
    reached: float | None = None
    triggered: float | None = None
    detected: float | None = None
    program: int | None = None
    """Number of the program that detected it."""
    signature: str = ""
    statements: int | None = None
    """Of the minimized program."""
    source: str = ""
    """The minimized program."""
    evaluations: int = 0
    elsewhere: int = 0
    """Failing programs that fail on the released wheel too, or not every time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One defect over all its seeds."""

    slug: str
    seeds: int
    hits: dict[str, int]
    """How many seeds got to each of `STAGES`."""
    medians: dict[str, float | None]
    """Median seconds over all seeds, a miss counting as never; None if most seeds missed."""
    statements: int | None

    @property
    def is_detected(self) -> bool:
        """In at least half of the seeds, as the median says."""
        return self.medians["detected"] is not None


def scores(trials: Sequence[Trial]) -> list[Score]:
    """One line per defect, in the order of the trials."""
    return [_score([trial for trial in trials if trial.slug == slug]) for slug in dict.fromkeys(t.slug for t in trials)]


def _score(trials: Sequence[Trial]) -> Score:
    times = {stage: [getattr(trial, stage) for trial in trials] for stage in STAGES}
    sizes = [trial.statements for trial in trials if trial.statements is not None]
    return Score(
        slug=trials[0].slug,
        seeds=len(trials),
        hits={stage: sum(value is not None for value in values) for stage, values in times.items()},
        medians={stage: _median(values) for stage, values in times.items()},
        statements=round(median(sizes)) if sizes else None,
    )


def _median(times: Sequence[float | None]) -> float | None:
    found = median(float("inf") if value is None else value for value in times)
    return None if found == float("inf") else found
