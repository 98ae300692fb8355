"""What a campaign finds, what it tells while it runs, and its summary: records for whoever stores or shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from fuzzer.backports import StrEnum
from fuzzer.verdict import Outcome, Signature, Verdict


class State(StrEnum):
    """What is known of a finding's entry."""

    VERIFIED = "verified"
    """The file was loaded again and failed again, in the same way, in a new process."""
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One defect that a campaign found: a bucket of failing programs, and the entry that stands for it."""

    bucket: str
    title: str
    signature: Signature
    state: State
    entry: str
    """Path of its corpus entry."""
    first_program: int
    first_seen: float
    """Seconds of campaign time until the first program of this bucket failed."""
    statements: int
    evaluations: int
    """Programs run to shrink it."""
    catches: tuple[str, ...] = ()
    times: int = 1
    """Failing programs that were shrunk to this bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The campaign begins."""

    target: str
    backend: str
    seed: int
    workers: int
    folder: str
    versions: tuple[tuple[str, str], ...]
    behind: int
    """Programs that a resumed campaign has run already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One program has its verdict."""

    number: int
    verdict: Verdict
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """A defect that was not known became a corpus entry."""

    finding: Finding
    seconds: float
    """What it took to shrink it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """How it stands, a few times a second."""

    seconds: float
    limit: float | None
    programs: int
    programs_limit: int | None
    outcomes: Mapping[Outcome, int]
    rate: float
    """Programs per second."""
    running: int
    workers: int
    ready: bool
    """Whether the platform is imported: before that nothing runs."""
    doing: str
    """What goes on besides running programs, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The end of a campaign."""

    programs: int
    """All of the campaign's, with those before it was resumed."""
    seconds: float
    """From the first program's start to the last one's end, all sessions together."""
    rate: float
    """Programs per second."""
    outcomes: Mapping[Outcome, int]
    stages: Mapping[str, float]
    """Seconds by stage, over all programs."""
    findings: tuple[Finding, ...]
    waiting: int
    """Failing programs that nobody looked into: their defects may be new."""
    repeated: int
    """Failing programs that were not shrunk, because others like them had led to known findings."""
    interrupted: bool
    folder: str
    versions: tuple[tuple[str, str], ...] = field(default=())

    @property
    def share(self) -> Mapping[Outcome, float]:
        """The part of the programs that each outcome has."""
        return {outcome: count / self.programs for outcome, count in self.outcomes.items()} if self.programs else {}

    @property
    def has_findings(self) -> bool:
        return bool(self.findings) or self.waiting > 0


Event: TypeAlias = Started | Ran | Filed | Tick | Summary


class Listener(Protocol):
    def __call__(self, event: Event, /) -> None: ...
