"""The campaign: programs 0, 1, 2, ... of a seed over all workers, and what becomes of those that fail.

One thread decides; it alone touches the store. Programs run in the pool's children; two more threads wait for
examinations: one attributes failing programs (a few runs each), one shrinks them (a few hundred).
"""

from __future__ import annotations

import queue
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from fuzzer.campaign.docket import Docket, Failing
from fuzzer.campaign.examine import Examined, Examiner, Postponed, Suspect, Unsteady, versions
from fuzzer.campaign.programs import Generators, Programs
from fuzzer.campaign.protocol import Reply, Settings
from fuzzer.campaign.store import Store
from fuzzer.campaign.worker import Pool
from fuzzer.corpus import Platform
from fuzzer.events import Filed, Finding, Listener, Ran, Started, State, Summary, Tick
from fuzzer.minimize import Budget
from fuzzer.verdict import Outcome, Verdict

TICK = 0.25
"""Seconds between two looks at the clock."""

Result: TypeAlias = "Reply | Suspect | Unsteady | Postponed | Examined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a campaign is to do."""

    settings: Settings
    folder: Path
    corpus: Path
    """Where entries go."""
    seed: int = 0
    config: tuple[tuple[str, bool | int | str], ...] = ()
    """Inductor options that every program gets."""
    source: Programs = field(default_factory=Generators)
    """Where programs come from."""
    programs: int | None = None
    """How many programs, or None for no limit."""
    seconds: float | None = None
    """How long new programs are begun, or None for no limit."""
    workers: int = 1
    resume: bool = False
    budget: Budget = field(default_factory=lambda: Budget(evaluations=300, seconds=300.0))
    """What shrinking one finding may cost."""
    grace: float = 0.25
    """Part of the time limit that examinations may take after it."""

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        return versions(Platform.of(self.settings.target))

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a resumed campaign must share with its beginning, for its verdicts to be the same."""
        settings = asdict(self.settings)
        del settings["timeout"], settings["memory"]
        return {
            **settings,
            "seed": self.seed,
            "programs": self.source.name,
            "families": self.source.families,
            "config": self.config,
            "versions": dict(self.versions),
        }


class Campaign:
    """One run of the loop. Make it and call `run` once."""

    def __init__(self, plan: Plan, listen: Listener) -> None:
        self._plan = plan
        self._listen = listen
        self._store = Store(plan.folder, plan.identity, resume=plan.resume)
        self._docket = Docket(attributes=bool(plan.settings.reintroduce), drop=self._on_dropped)
        self._results: queue.Queue[tuple[int, Future[Any]]] = queue.Queue()
        self._done = self._store.done()
        self._programs = plan.source.seeded(plan.seed, plan.config)
        self._next_program = 0
        self._exhausted = False
        """The source has no more programs."""
        self._next_reply = 0
        self._exploring: dict[int, Future[Reply]] = {}
        self._early: dict[int, Reply] = {}
        """Replies that came before those of earlier programs: failing programs are looked at in order."""
        self._attributing = False
        self._shrinking = False
        self._first_seen: dict[int, float] = {}
        self._outcomes: Counter[Outcome] = Counter()
        self._stages: dict[str, float] = {}
        self._findings = {finding.bucket: finding for finding in self._store.findings()}
        self._repeated = 0
        self._interrupted = False
        self._stop_shrinking = False
        self._before = float(self._store.meta("seconds", "0"))
        """Seconds of earlier sessions."""
        self._begun = time.monotonic()

    def run(self) -> Summary:
        """Raises FuzzerError when the platform cannot be prepared."""
        plan = self._plan
        try:
            self._recall()
            self._listen(
                Started(
                    target=plan.settings.target,
                    backend=plan.settings.backend,
                    seed=plan.seed,
                    workers=plan.workers,
                    folder=str(plan.folder),
                    versions=plan.versions,
                    behind=len(self._done),
                )
            )
            self._begun = time.monotonic()
            with _interruptible(self._interrupt), Pool(plan.settings, workers=plan.workers) as pool:
                self._loop(pool)
            summary = self._summary()
        finally:
            self._store.set_meta("seconds", str(self._seconds))
            self._store.close()
        self._listen(summary)
        return summary

    def _loop(self, pool: Pool) -> None:
        examiner = Examiner(pool)
        with ThreadPoolExecutor(1, "attribute") as attribute, ThreadPoolExecutor(1, "shrink") as shrink:
            try:
                while not self._is_over():
                    self._explore(pool)
                    self._examine(examiner, attribute, shrink)
                    self._take()
                    self._listen(self._tick(pool))
            finally:
                self._stop_shrinking = True
                pool.close()  # wakes the two threads: what they wait for is cancelled

    # -- what to do next

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begun

    @property
    def _seconds(self) -> float:
        """Campaign time: all sessions."""
        return self._before + self._elapsed

    @property
    def _may_explore(self) -> bool:
        plan = self._plan
        wanted = plan.programs is None or self._next_program < plan.programs
        return wanted and not self._exhausted and not self._is_late

    @property
    def _is_late(self) -> bool:
        return self._plan.seconds is not None and self._elapsed >= self._plan.seconds

    def _is_over(self) -> bool:
        if self._interrupted:
            return True
        if self._may_explore or self._exploring or not self._results.empty():
            return False
        limit = self._plan.seconds
        if limit is not None and self._elapsed >= limit * (1 + self._plan.grace):
            self._stop_shrinking = True  # what is being shrunk is filed, as small as it is by now
            return not self._shrinking
        return not (self._attributing or self._shrinking or self._docket.waiting)

    def _explore(self, pool: Pool) -> None:
        if self._is_late:
            for future in self._exploring.values():
                future.cancel()  # only what has not begun
        while len(self._exploring) < 2 * self._plan.workers and self._may_explore:
            number = self._next_program
            job = self._programs.job(number)
            if job is None:
                self._exhausted = True
                return
            self._next_program += 1
            if number not in self._done:
                self._exploring[number] = pool.submit(job)
                self._exploring[number].add_done_callback(self._deliver(number))

    def _examine(self, examiner: Examiner, attribute: ThreadPoolExecutor, shrink: ThreadPoolExecutor) -> None:
        if not self._attributing and (failing := self._docket.next_failing()) is not None:
            self._attributing = True
            attributed = attribute.submit(examiner.attribute, failing.number, failing.case, failing.signature)
            attributed.add_done_callback(self._deliver(failing.number))
        if not self._shrinking and not self._stop_shrinking and (suspect := self._docket.next_suspect()) is not None:
            self._shrinking = True
            shrunk = shrink.submit(self._shrink_and_file, examiner, suspect, frozenset(self._findings))
            shrunk.add_done_callback(self._deliver(suspect.number))

    def _shrink_and_file(self, examiner: Examiner, suspect: Suspect, known: frozenset[str]) -> Examined | Postponed:
        """A live defect makes room for one that was brought back and caught, which the campaign is for."""
        makes_room = False

        def stop() -> bool:
            nonlocal makes_room
            makes_room = suspect.live and self._docket.has_caught
            return makes_room or self._stop_shrinking

        examined = examiner.shrink(suspect, budget=self._plan.budget, stop=stop)
        if examined.exhausted and makes_room and not self._stop_shrinking:
            return Postponed(suspect=replace(suspect, case=examined.case))
        return examined if examined.bucket in known else examiner.file(examined, self._plan.corpus)

    def _deliver(self, number: int) -> Callable[[Future[Any]], None]:
        return lambda future: self._results.put((number, future))

    def _interrupt(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt  # a second time: now
        self._interrupted = True

    # -- what came of it

    def _take(self) -> None:
        """Waits a moment for a result, and takes all that are there."""
        try:
            waiting = [self._results.get(timeout=TICK)]
        except queue.Empty:
            return
        while not self._results.empty():
            waiting.append(self._results.get_nowait())
        for number, future in waiting:
            if number in self._exploring and self._exploring[number] is future:
                del self._exploring[number]
            try:
                result: Result = future.result()
            except CancelledError:
                continue
            match result:
                case Reply():
                    self._on_reply(number, result)
                case Suspect():
                    self._attributing = False
                    self._docket.add(result)
                case Unsteady():
                    self._attributing = False
                    self._on_unsteady(result)
                case Postponed():
                    self._shrinking = False
                    self._docket.postpone(result.suspect)
                case Examined():
                    self._shrinking = False
                    self._on_examined(result)

    def _on_reply(self, number: int, reply: Reply) -> None:
        self._store.add_program(number, reply)
        self._count(reply.verdict)
        self._first_seen[number] = self._seconds
        self._listen(Ran(number=number, verdict=reply.verdict, seconds=reply.seconds))
        self._early[number] = reply
        while self._next_reply in self._early or self._next_reply in self._done:
            early = self._early.pop(self._next_reply, None)
            if early is not None and early.case is not None and early.verdict.signature is not None:
                failing = Failing(number=self._next_reply, case=early.case, signature=early.verdict.signature)
                self._docket.add(failing)
            else:
                self._first_seen.pop(self._next_reply, None)
            self._next_reply += 1

    def _on_dropped(self, number: int) -> None:
        self._repeated += 1
        self._store.add_examined(number, "repeated", None)

    def _on_unsteady(self, unsteady: Unsteady) -> None:
        self._store.set_outcome(unsteady.number, Outcome.COMPILE_FLAKY, unsteady.evidence)
        self._store.add_examined(unsteady.number, "unsteady", None)
        self._outcomes[Outcome.BUG] -= 1
        self._outcomes[Outcome.COMPILE_FLAKY] += 1

    def _on_examined(self, examined: Examined) -> None:
        suspect = examined.suspect
        known = self._findings.get(examined.bucket)
        self._store.add_examined(suspect.number, "shrunk", examined.bucket)
        self._docket.record(suspect, is_new=known is None and examined.path is not None)
        if known is not None:
            self._keep(replace(known, times=known.times + 1))
        elif examined.path is not None:
            finding = Finding(
                bucket=examined.bucket,
                title=examined.title,
                signature=suspect.signature,
                state=State.VERIFIED,
                entry=str(examined.path),
                first_program=suspect.number,
                first_seen=self._first_seen.get(suspect.number, self._seconds),
                statements=examined.statements,
                evaluations=examined.evaluations,
                catches=examined.catches,
            )
            self._keep(finding)
            self._listen(Filed(finding=finding, seconds=examined.seconds))

    def _keep(self, finding: Finding) -> None:
        self._findings[finding.bucket] = finding
        self._store.put_finding(finding)

    def _count(self, verdict: Verdict) -> None:
        self._outcomes[verdict.outcome] += 1
        for stage, seconds in verdict.seconds:
            self._stages[stage] = self._stages.get(stage, 0.0) + seconds

    def _recall(self) -> None:
        """Takes up what an earlier session left: its counts, and failing programs that nobody looked into."""
        examined = self._store.examined()
        for number, verdict in self._store.verdicts():
            self._count(verdict)
            if verdict.signature is not None and number not in examined:
                case = self._store.case(number)
                if case is not None:
                    self._docket.add(Failing(number=number, case=case, signature=verdict.signature))

    # -- what is told

    def _tick(self, pool: Pool) -> Tick:
        programs = self._outcomes.total()
        doing = [f"{self._docket.waiting} to examine"] if self._docket.waiting else []
        doing += ["attributing"] if self._attributing else []
        doing += ["shrinking"] if self._shrinking else []
        return Tick(
            seconds=self._elapsed,
            limit=self._plan.seconds,
            programs=programs,
            programs_limit=self._plan.programs,
            outcomes=dict(self._outcomes),
            rate=programs / self._seconds if self._seconds else 0.0,
            running=pool.running,
            workers=self._plan.workers,
            ready=pool.is_ready,
            doing=", ".join(doing),
        )

    def _summary(self) -> Summary:
        programs = self._outcomes.total()
        return Summary(
            programs=programs,
            seconds=self._seconds,
            rate=programs / self._seconds if self._seconds else 0.0,
            outcomes=dict(self._outcomes),
            stages=dict(self._stages),
            findings=tuple(sorted(self._findings.values(), key=lambda one: (one.first_program, one.bucket))),
            waiting=self._docket.waiting + self._attributing + self._shrinking,
            repeated=self._repeated,
            interrupted=self._interrupted,
            folder=str(self._plan.folder),
            versions=self._plan.versions,
        )


@contextmanager
def _interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls `interrupt` instead of raising in the middle of something."""

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
