"""Which failing programs are looked into, and in which order, so that one loud defect does not hide a quiet one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzzer.campaign.examine import Suspect
from fuzzer.program import Case
from fuzzer.verdict import Signature

STALE = 3
"""So many suspects of one class in a row that lead to no new finding, and no more of that class are looked into."""

MOST_OF_A_CLASS = 24
"""So many suspects of one class are looked into at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A program that failed once."""

    number: int
    case: Case
    signature: Signature


@dataclass(slots=True)
class _Class:
    """What came of the suspects with one signature, live or caught."""

    begun: int = 0
    stale: int = 0

    @property
    def is_closed(self) -> bool:
        return self.stale >= STALE or self.begun >= MOST_OF_A_CLASS


class Docket:
    """Failing programs that wait to be attributed, and suspects that wait to be shrunk.

    A class is a signature, and whether the released wheel fails too. One signature may hide many defects, so a class
    stays open as long as shrinking its suspects brings new findings. `drop` hears of every program that is left out.
    """

    def __init__(self, *, attributes: bool, drop: Callable[[int], None]) -> None:
        self._attributes = attributes
        """Whether defects were brought back, so that a failure may be live or caught."""
        self._drop = drop
        self._failing: list[Failing] = []
        self._suspects: list[Suspect] = []
        self._classes: dict[tuple[Signature, bool], _Class] = {}

    @property
    def waiting(self) -> int:
        return len(self._failing) + len(self._suspects)

    def add(self, one: Failing | Suspect) -> None:
        if isinstance(one, Suspect):
            self._suspects.append(one)
        else:
            self._failing.append(one)

    def next_failing(self) -> Failing | None:
        """The next program to attribute, in order."""
        while self._failing:
            failing = self._failing.pop(0)
            lives = (True, False) if self._attributes else (True,)
            if not all(self._class(failing.signature, live).is_closed for live in lives):
                return failing
            self._drop(failing.number)
        return None

    def next_suspect(self) -> Suspect | None:
        """The next program to shrink: caught before live, then of the class looked into least, then the shortest."""
        while self._suspects:
            suspect = min(
                self._suspects,
                key=lambda one: (
                    one.live,
                    self._class(one.signature, one.live).begun,
                    len(one.case.source),
                    one.number,
                ),
            )
            self._suspects.remove(suspect)
            kind = self._class(suspect.signature, suspect.live)
            if not kind.is_closed:
                kind.begun += 1
                return suspect
            self._drop(suspect.number)
        return None

    @property
    def has_caught(self) -> bool:
        """Whether a program waits that fails only because a defect was brought back."""
        return any(not suspect.live for suspect in self._suspects)

    def postpone(self, suspect: Suspect) -> None:
        """Takes a suspect back that was given out and is not done."""
        self._class(suspect.signature, suspect.live).begun -= 1
        self._suspects.append(suspect)

    def record(self, suspect: Suspect, *, is_new: bool) -> None:
        """Whether shrinking a suspect brought a new finding."""
        kind = self._class(suspect.signature, suspect.live)
        kind.stale = 0 if is_new else kind.stale + 1

    def _class(self, signature: Signature, live: bool) -> _Class:
        return self._classes.setdefault((signature, live), _Class())
