"""What happens to a failing program: it fails again, is attributed, shrinks, becomes an entry, and fails once more.

With backend fixes taken back, a second fork server runs the wheel as released. What fails there too is a live defect
and is shrunk there; what passes there is caught, and stays caught while it shrinks: every candidate has to pass there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from fuzzer import corpus
from fuzzer.campaign.protocol import Reply, RunCase, Settings
from fuzzer.campaign.worker import Lane, Pool
from fuzzer.corpus import Entry, Expect, Platform
from fuzzer.minimize import Budget, minimize
from fuzzer.program import Case, FuzzerError, Program
from fuzzer.source import case_of, parse_program
from fuzzer.triage import bucket, same, title, unparsed
from fuzzer.verdict import Outcome, Signature, Verdict

PACKAGES: dict[Platform, tuple[str, ...]] = {
    Platform.NPU: ("torch", "torch_npu", "triton-ascend", "ascendnpu-ir"),
    Platform.CPU: ("torch",),
    Platform.CUDA: ("torch", "triton"),
}
"""Packages whose versions an entry names, by platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A program that failed twice, and the settings under which it is to be shrunk."""

    number: int
    case: Case
    signature: Signature
    live: bool
    """It fails on the released wheel, with nothing taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsteady:
    """A program that failed once, and not in the same way when it was compiled again."""

    number: int
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A suspect, shrunk."""

    suspect: Suspect
    case: Case
    """The smallest program; the suspect's own where it is somebody else's text that we cannot parse."""
    statements: int
    bucket: str
    title: str
    evaluations: int
    seconds: float
    exhausted: bool
    """The budget ended it, or it was told to stop: it might get smaller."""
    path: Path | None = None
    """Of its entry; None when it was not filed, or when what was filed did not fail."""
    catches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed:
    """A suspect that was shrunk so far and then had to make room."""

    suspect: Suspect


class Examiner:
    """Runs the examinations of one campaign on its pool; every method waits for its results."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._settings = pool.settings

    def attribute(self, number: int, case: Case, signature: Signature) -> Suspect | Unsteady:
        """Runs a failing program again, in a new process, and on the released wheel if defects were brought back."""
        settings = self._settings
        asked = [settings, settings.released] if settings.reintroduce else [settings]
        futures = [self._pool.submit(RunCase(case=case), lane=Lane.CONFIRM, settings=one) for one in asked]
        again, *released = [future.result().verdict for future in futures]
        if not _fails(again, signature):
            said = f"{again.outcome} {again.signature or ''}".rstrip()
            return Unsteady(number=number, evidence=f"first {signature}; in a new process {said}")
        if not released:
            return Suspect(number=number, case=case, signature=signature, live=True)
        if released[0].outcome is Outcome.PASS:
            return Suspect(number=number, case=case, signature=signature, live=False)
        caught = self._caught_output(case)
        if caught is not None:
            return Suspect(number=number, case=caught[0], signature=caught[1], live=False)
        if released[0].signature is not None:
            return Suspect(number=number, case=case, signature=released[0].signature, live=True)
        return Unsteady(number=number, evidence=f"{signature}; on the released wheel {released[0].outcome}")

    def _caught_output(self, case: Case) -> tuple[Case, Signature] | None:
        """One output of a program that, alone, fails with the defects brought back and passes without."""
        parts = tuple(_one_output_each(case))
        edited = [(part, reply.verdict.signature) for part, reply in zip(parts, self._run(parts), strict=True)]
        failing = [(part, signature) for part, signature in edited if signature is not None]
        released = self._run([part for part, _ in failing], self._settings.released)
        for one, reply in zip(failing, released, strict=True):
            if reply.verdict.outcome is Outcome.PASS:
                return one
        return None

    def shrink(self, suspect: Suspect, *, budget: Budget, stop: Callable[[], bool] = lambda: False) -> Examined:
        """Minimizes a suspect: the smallest program of the same signature, within the budget."""
        try:
            program = parse_program(suspect.case.source, suspect.case.mode)
        except FuzzerError:
            return _as_it_is(suspect)

        def interesting(candidates: Sequence[Program]) -> list[bool]:
            return self._still_fails([case_of(program) for program in candidates], suspect)

        minimized = minimize(
            program,
            interesting,
            budget=budget,
            parallel=self._pool.workers,
            stop=stop,
        )
        return Examined(
            suspect=suspect,
            case=case_of(minimized.program),
            statements=len(minimized.program.nodes),
            bucket=bucket(minimized.program, suspect.signature).id,
            title=title(minimized.program, suspect.signature),
            evaluations=minimized.evaluations,
            seconds=minimized.seconds,
            exhausted=minimized.exhausted,
        )

    def entry(self, examined: Examined) -> Entry:
        """The corpus entry of a shrunk suspect, with the defects that it catches."""
        suspect = examined.suspect
        catches = () if suspect.live else self._catches(examined.case, suspect.signature)
        return entry_of(examined, self._settings, catches)

    def file(self, examined: Examined, folder: Path) -> Examined:
        """Writes the entry, reads it back, and runs that in a new process; removes it if it does not fail."""
        entry = self.entry(examined)
        path = corpus.save(entry, folder)
        verified = all(self._still_fails([corpus.load(path).case], examined.suspect))
        if not verified:
            path.unlink()
        return replace(examined, path=path if verified else None, catches=entry.catches)

    def _still_fails(self, cases: Sequence[Case], suspect: Suspect) -> list[bool]:
        settings = self._settings.released if suspect.live else self._settings
        replies = self._run(cases, settings, Lane.SHRINK)
        answers = [_fails(reply.verdict, suspect.signature) for reply in replies]
        if not suspect.live:
            failing = [case for case, answer in zip(cases, answers, strict=True) if answer]
            released = iter(self._run(failing, settings.released, Lane.SHRINK))
            answers = [answer and next(released).verdict.outcome is Outcome.PASS for answer in answers]
        return answers

    def _catches(self, case: Case, signature: Signature) -> tuple[str, ...]:
        """The defects each of which alone makes the program fail; all of them when it takes more than one."""
        names = self._settings.reintroduce
        if len(names) > 1:
            alone = [replace(self._settings, reintroduce=(name,)) for name in names]
            replies = [self._run([case], settings)[0] for settings in alone]
            guilty = [name for name, reply in zip(names, replies, strict=True) if _fails(reply.verdict, signature)]
            names = tuple(guilty) or names
        from fuzzer import fixes

        return tuple(fixes.find(name).slug for name in names)

    def _run(self, cases: Sequence[Case], settings: Settings | None = None, lane: Lane = Lane.CONFIRM) -> list[Reply]:
        return self._pool.run([RunCase(case=case) for case in cases], lane=lane, settings=settings)


def _as_it_is(suspect: Suspect) -> Examined:
    """A suspect of operators that we do not know: one bucket for each signature, whose first program stands for it."""
    bucket, title = unparsed(suspect.signature)
    functions = [node for node in ast.parse(suspect.case.source).body if isinstance(node, ast.FunctionDef)]
    body = next(function.body for function in functions if function.name == "program")
    return Examined(
        suspect=suspect,
        case=suspect.case,
        statements=sum(not isinstance(statement, ast.Return) for statement in body),
        bucket=bucket.id,
        title=title,
        evaluations=0,
        seconds=0.0,
        exhausted=False,
    )


def entry_of(examined: Examined, settings: Settings, catches: tuple[str, ...]) -> Entry:
    """The corpus entry of a shrunk suspect."""
    platform = Platform.of(settings.target)
    return Entry(
        id=examined.bucket,
        sentence=examined.title,
        case=examined.case,
        signature=examined.suspect.signature,
        expect=Expect.FAIL if examined.suspect.live else Expect.PASS,
        catches=catches,
        target=platform,
        backend=settings.backend if platform is Platform.NPU else "",
        found_on=versions(platform),
    )


def versions(platform: Platform) -> tuple[tuple[str, str], ...]:
    """The installed versions of the packages that make up a platform; one that is not installed is left out."""
    found: list[tuple[str, str]] = []
    for name in PACKAGES[platform]:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def _fails(verdict: Verdict, signature: Signature) -> bool:
    return verdict.signature is not None and same(verdict.signature, signature)


def _one_output_each(case: Case) -> Iterator[Case]:
    """The program with one of its outputs at a time: another output may hide what this one shows."""
    try:
        program = parse_program(case.source, case.mode)
    except FuzzerError:
        return  # a user's own text, of operators that we do not know
    if len(program.outputs) > 1:
        for name in dict.fromkeys(program.outputs):
            yield case_of(replace(program, outputs=(name,)))
