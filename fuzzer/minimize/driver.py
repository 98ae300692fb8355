"""The search: each pass's candidates in order, the first interesting one becomes the program, until the budget ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fuzzer.minimize.passes import PASSES, Pass
from fuzzer.program import FuzzerError, Program

Interesting: TypeAlias = Callable[[Sequence[Program]], Sequence[bool]]
"""Says of each candidate whether it still shows the defect; may work on them in parallel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a minimization may cost; None is no limit. Time is looked at between batches, so one batch may overrun."""

    evaluations: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("evaluations", self.evaluations), ("seconds", self.seconds)):
            if value is not None and value < 0:
                raise ValueError(f"budget of {value} {name}: give a number that is not negative, or None for no limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimized:
    """The smallest interesting program found so far, and what it took."""

    program: Program
    evaluations: int = 0
    """Candidates that were given to `interesting`."""
    seconds: float = 0.0
    steps: int = 0
    """Candidates that were accepted."""
    exhausted: bool = False
    """The budget ended the search: more might have been possible."""


def minimize(
    program: Program,
    interesting: Interesting,
    *,
    budget: Budget | None = None,
    on_progress: Callable[[Minimized], None] = lambda _: None,
    parallel: int = 2,
    stop: Callable[[], bool] = lambda: False,
    passes: Sequence[Pass] = PASSES,
    clock: Callable[[], float] = time.monotonic,
) -> Minimized:
    """Shrink `program`, taken to be interesting, to one of which no pass can take anything more.

    The result depends on the answers only: the first interesting candidate in order wins, whatever `parallel` (how many
    candidates a batch holds) is. No candidate is evaluated twice. `on_progress` gets every improvement; `stop` is asked
    before every batch, and True ends the search like a spent budget. Where a defect shows only now and then, it is
    `interesting` that decides how many of how many runs count.

    Raises:
        FuzzerError: `interesting` answered for fewer or more candidates than it was given.

    """
    search = _Search(program, interesting, budget or Budget(), on_progress, parallel, stop, clock)
    while sum(search.exhaust(step) for step in passes):
        continue
    return search.result


class _Search:
    """The state of one minimization."""

    def __init__(
        self,
        program: Program,
        interesting: Interesting,
        budget: Budget,
        on_progress: Callable[[Minimized], None],
        parallel: int,
        stop: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.program = program
        self.interesting = interesting
        self.budget = budget
        self.on_progress = on_progress
        self.parallel = parallel
        self.stop = stop
        self.clock = clock
        self.started = clock()
        self.answers: dict[Program, bool] = {}
        self.steps = 0
        self.exhausted = False

    @property
    def result(self) -> Minimized:
        return Minimized(
            program=self.program,
            evaluations=len(self.answers),
            seconds=self.clock() - self.started,
            steps=self.steps,
            exhausted=self.exhausted,
        )

    def exhaust(self, step: Pass) -> bool:
        """Apply `step` until it yields nothing interesting; whether it ever did.

        After a success the search goes on from the same place in the new program's candidates, and comes to those
        before it last: they were refused a moment ago in nearly the same program.
        """
        improved = False
        place = 0
        while True:
            candidates = step(self.program)
            found = self._first(candidates[place:] + candidates[:place])
            if found is None:
                return improved
            improved = True
            place = (place + found) % len(candidates)

    def _first(self, candidates: Sequence[Program]) -> int | None:
        """Position of the first interesting candidate, which becomes the program."""
        for position, candidate in enumerate(candidates):
            if candidate not in self.answers and not self._ask(candidates[position:]):
                return None
            if self.answers[candidate]:
                self.program = candidate
                self.steps += 1
                self.on_progress(self.result)
                return position
        return None

    def _ask(self, candidates: Sequence[Program]) -> bool:
        """Get the answer for the first of `candidates`, and for those after it that fit the batch; False: no budget."""
        room = self._room()
        if room <= 0:
            self.exhausted = True
            return False
        batch = [candidate for candidate in candidates if candidate not in self.answers][:room]
        answers = list(self.interesting(batch))
        if len(answers) != len(batch):
            raise FuzzerError(f"the predicate answered {len(answers)} times for {len(batch)} candidates: one for each")
        self.answers.update(zip(batch, answers, strict=True))
        return True

    def _room(self) -> int:
        """How many candidates the next batch may hold."""
        budget = self.budget
        if self.stop() or (budget.seconds is not None and self.clock() - self.started >= budget.seconds):
            return 0
        if budget.evaluations is None:
            return self.parallel
        return min(self.parallel, budget.evaluations - len(self.answers))
