"""Recall: each fixed defect is brought back, and campaigns from a cold start try to find it.

A trial is one defect and one seed. Programs run with the defect; *reached* is the first that executes an edited
statement, *triggered* the first whose kernels, launches or results then differ from those of the released wheel,
*detected* the first that fails in a way that vanishes on the released wheel. The clock starts with the processes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzzer import fixes
from fuzzer.campaign.examine import Examiner, Suspect, versions
from fuzzer.campaign.programs import Generators, Programs
from fuzzer.campaign.protocol import Reply, RunCase, Settings
from fuzzer.campaign.worker import Lane, Pool
from fuzzer.corpus import Platform, write_whole
from fuzzer.minimize import Budget
from fuzzer.program import FuzzerError
from fuzzer.recall import STAGES, Trial

TICK = 0.1
"""Seconds between two looks at what has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """What is to be measured."""

    fixes: tuple[str, ...]
    """Slugs, or paths of modules."""
    folder: Path
    seconds: float
    """Per trial, from the start of its processes; shrinking comes on top."""
    seeds: tuple[int, ...]
    programs: Programs = field(default_factory=Generators)
    target: str = "sim"
    workers: int = 1
    timeout: float = 60.0
    budget: Budget = field(default_factory=lambda: Budget(evaluations=200, seconds=90.0))
    """What shrinking the program of one trial may cost."""

    @property
    def identity(self) -> dict[str, Any]:
        """What trials must share to stand in one table."""
        return {
            "seconds": self.seconds,
            "target": self.target,
            "workers": self.workers,
            "source": self.programs.name,
            "versions": dict(versions(Platform.of(self.target))),
        }


def run_bench(plan: BenchPlan, on_trial: Callable[[Trial, bool], None]) -> list[Trial]:
    """Runs every trial that the folder does not hold yet. `on_trial` hears of each, and whether it was measured now.

    Raises FuzzerError when the folder holds trials that were measured in another way.
    """
    _check_identity(plan)
    trials: list[Trial] = []
    for seed in plan.seeds:
        for name in plan.fixes:
            path = plan.folder / "trials" / f"{fixes.find(name).slug}-{seed}.json"
            known = path.exists()
            trial = _load(path) if known else _Measurement(plan, name, seed).run()
            if not known:
                _save(path, asdict(trial))
            trials.append(trial)
            on_trial(trial, not known)
    return trials


class _Measurement:
    """One trial while it runs."""

    def __init__(self, plan: BenchPlan, name: str, seed: int) -> None:
        self._plan = plan
        self._name = name
        self._fix = fix = fixes.find(name)
        self._seed = seed
        self._traced = fixes.is_traced(fix)
        """Where it is not, what has an effect counts as reached."""
        self._begun = time.monotonic()
        self._exploring: dict[int, Future[Reply]] = {}
        self._comparing: tuple[Reply, Future[Reply]] | None = None
        """A program that runs on the released wheel as well: does the defect have an effect on it?"""
        self._uncompared: list[Reply] = []
        self._failing: list[tuple[int, Reply]] = []
        self._attributing: tuple[int, Future[Any]] | None = None
        self._times: dict[str, float] = {}
        self._next = 0
        self._programs = 0
        self._elsewhere = 0
        self._caught: tuple[int, Suspect] | None = None

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._begun

    def _mark(self, *stages: str) -> None:
        """These stages are reached by now, if they were not before."""
        for stage in stages:
            self._times.setdefault(stage, self._seconds)

    def run(self) -> Trial:
        plan, fix = self._plan, self._fix
        settings = Settings(
            target=plan.target, backend=fix.backend.value, reintroduce=(self._name,), timeout=plan.timeout
        )
        programs = plan.programs.seeded(self._seed, fix.config)
        with Pool(settings, workers=plan.workers) as pool, ThreadPoolExecutor(1, "attribute") as attribute:
            examiner = Examiner(pool)
            try:
                while self._caught is None and self._seconds < plan.seconds:
                    self._explore(pool, programs)
                    self._compare(pool)
                    self._attribute(examiner, attribute)
                    if not (self._exploring or self._comparing or self._attributing):
                        break  # the source has no more programs
                    time.sleep(TICK)
                for future in self._exploring.values():
                    future.cancel()
                return self._trial(examiner)
            finally:
                pool.close()  # wakes the thread: what it waits for is cancelled

    def _explore(self, pool: Pool, programs: Programs) -> None:
        for number, future in list(self._exploring.items()):
            if future.done():
                del self._exploring[number]
                self._take(number, future.result())
        while len(self._exploring) < 2 * self._plan.workers and (job := programs.job(self._next)) is not None:
            self._exploring[self._next] = pool.submit(job)
            self._next += 1

    def _take(self, number: int, reply: Reply) -> None:
        self._programs += 1
        if self._fix.slug in reply.reached:
            self._mark("reached")
        if (self._fix.slug in reply.reached or not self._traced) and reply.effect:
            self._uncompared.append(reply)
        if reply.verdict.signature is not None and reply.case is not None:
            self._failing.append((number, reply))

    def _compare(self, pool: Pool) -> None:
        if self._comparing is not None and self._comparing[1].done():
            reply, future = self._comparing
            self._comparing = None
            released = future.result()
            if released.effect and released.effect != reply.effect:
                self._mark("reached", "triggered")
        if self._comparing is None and self._uncompared and "triggered" not in self._times:
            reply = self._uncompared.pop(0)
            assert reply.case is not None
            job = RunCase(case=reply.case)
            self._comparing = reply, pool.submit(job, lane=Lane.CONFIRM, settings=pool.settings.released)

    def _attribute(self, examiner: Examiner, attribute: ThreadPoolExecutor) -> None:
        if self._attributing is not None and self._attributing[1].done():
            number, future = self._attributing
            self._attributing = None
            result = future.result()
            if isinstance(result, Suspect) and not result.live:
                self._caught = number, result
                self._mark(*STAGES)
            else:
                self._elsewhere += 1
        if self._attributing is None and self._caught is None and self._failing:
            number, reply = self._failing.pop(0)
            assert reply.case is not None
            assert reply.verdict.signature is not None
            job = attribute.submit(examiner.attribute, number, reply.case, reply.verdict.signature)
            self._attributing = number, job

    def _trial(self, examiner: Examiner) -> Trial:
        trial = Trial(
            slug=self._fix.slug,
            seed=self._seed,
            programs=self._programs,
            reached=self._times.get("reached"),
            triggered=self._times.get("triggered"),
            detected=self._times.get("detected"),
            elsewhere=self._elsewhere,
        )
        if self._caught is None:
            return trial
        number, suspect = self._caught
        small = examiner.shrink(suspect, budget=self._plan.budget)
        return replace(
            trial,
            program=number,
            signature=str(suspect.signature),
            statements=small.statements,
            source=small.case.source,
            evaluations=small.evaluations,
        )


def _check_identity(plan: BenchPlan) -> None:
    path = plan.folder / "bench.json"
    if not path.exists():
        _save(path, plan.identity)
        return
    held = json.loads(path.read_text())
    for name, value in plan.identity.items():
        if held.get(name) != value:
            raise FuzzerError(
                f"{plan.folder} holds trials with {name} = {held.get(name)!r}, not {value!r}: use another --out"
            )


def _load(path: Path) -> Trial:
    return Trial(**json.loads(path.read_text()))


def _save(path: Path, data: dict[str, Any]) -> None:
    write_whole(path, json.dumps(data, indent=1) + "\n")
