"""What a child's end says about its program, when the child itself could not say it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuzzer.backports import StrEnum
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

BEFORE_COMPILING = frozenset({Stage.REFERENCE, Stage.EAGER})
"""Stages in which nothing of the code under test runs."""

COMPARED = frozenset({Outcome.PASS, Outcome.EXCUSED, Outcome.INCONCLUSIVE})
"""Outcomes of programs that ran to their end; so did a BUG at stage judge."""

EVIDENCE_LINES = 16

PRINTED = "it printed:"

NOISE = ("Extension modules:", "simnpu: ")
"""How lines begin that say nothing, or that the fault's record says better."""


class Cause(StrEnum):
    """How a child ended."""

    EXIT = "exit"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A child's end, and what it left behind."""

    cause: Cause
    status: int = 0
    """Exit status or signal number."""
    crumbs: tuple[tuple[Stage, str], ...] = ()
    """The steps it had begun, in order."""
    faults: tuple[str, ...] = ()
    """Memory faults that the simulator named, one JSON object each."""
    output: str = ""
    limit: str = ""
    """The limit that was passed, for people."""

    @property
    def stage(self) -> Stage:
        """The last stage of the code under test that was entered, else the last stage of all."""
        for stage, _ in reversed(self.crumbs):
            if stage not in BEFORE_COMPILING and stage is not Stage.JUDGE:
                return stage
        return self.crumbs[-1][0] if self.crumbs else Stage.REFERENCE

    @property
    def was_compiling(self) -> bool:
        return self.stage not in BEFORE_COMPILING and self.stage is not Stage.JUDGE

    def __str__(self) -> str:
        match self.cause:
            case Cause.SIGNAL:
                return f"the process died of {_signal_name(self.status)}"
            case Cause.EXIT:
                return f"the process ended by itself with status {self.status}"
            case Cause.TIMEOUT:
                return f"the process was killed: still running after {self.limit}"
            case Cause.MEMORY:
                return f"the process was killed: it held more than {self.limit} of memory"


def explain(end: End) -> Verdict:
    """The verdict on a program whose child ended without giving one."""
    evidence = _evidence(end)
    memory = _memory_signature(end.faults) if end.was_compiling else None
    if memory is not None:
        return Verdict(outcome=Outcome.BUG, signature=memory, evidence=evidence, oracle="process")
    if not end.was_compiling:
        return Verdict(outcome=Outcome.LOST, evidence=evidence, oracle="process")
    if end.cause is Cause.TIMEOUT:
        if end.crumbs[-1][0] in BEFORE_COMPILING or end.crumbs[-1][0] is Stage.JUDGE:
            # The compiled run was over: it is the oracle's own eager runs that take too long.
            return Verdict(outcome=Outcome.LOST, evidence=evidence, oracle="process")
        signature = Signature(kind=Kind.HANG, stage=end.stage, origin="timeout")
    else:
        signature = Signature(kind=Kind.CRASH, stage=end.stage, origin=_origin(end))
    return Verdict(outcome=Outcome.BUG, signature=signature, evidence=evidence, oracle="process")


def with_faults(verdict: Verdict, end: End) -> Verdict:
    """The child's own verdict, unless the simulator saw a memory fault: overwritten memory explains the rest."""
    memory = _memory_signature(end.faults) if end.was_compiling else None
    if memory is None or verdict.outcome in (Outcome.INVALID, Outcome.UNSUPPORTED):
        return verdict
    told = (f"besides: {verdict.outcome} {verdict.signature or ''}".rstrip(), *verdict.evidence)
    return Verdict(
        outcome=Outcome.BUG,
        signature=memory,
        evidence=(*_fault_lines(end.faults), *told),
        oracle="memory",
        seconds=verdict.seconds,
    )


def with_opinion(verdict: Verdict, interpreted: Verdict | None) -> Verdict:
    """A memory fault with what Triton's interpreter, which checks each access of the source, says of the program.

    `interpreted` is the verdict on the run by the interpreter, None if there is none. Only evidence is added.
    """
    line = f"interpreter: {_opinion(interpreted)}"
    place = next((i for i, told in enumerate(verdict.evidence) if told == PRINTED), len(verdict.evidence))
    return replace(verdict, evidence=(*verdict.evidence[:place], line, *verdict.evidence[place:]))


def _opinion(interpreted: Verdict | None) -> str:
    if interpreted is None:
        return "did not run"
    signature = interpreted.signature
    if signature is not None and signature.kind is Kind.MEMORY:
        told = interpreted.evidence[0].partition("KernelMemoryError: ")[2].rpartition(" [")[0]
        return told or interpreted.evidence[0]
    if interpreted.outcome in COMPARED or (signature is not None and signature.stage is Stage.JUDGE):
        return "every access of the Triton source is in bounds: the compilers made this one"
    return f"cannot tell: {interpreted.outcome} {signature or ''}".rstrip()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _origin(end: End) -> str:
    match end.cause:
        case Cause.SIGNAL:
            return _signal_name(end.status)
        case Cause.MEMORY:
            return "memory-limit"
        case _:
            return f"exit-{end.status}"


def _records(faults: Sequence[str]) -> list[Mapping[str, Any]]:
    records: list[Mapping[str, Any]] = []
    for line in faults:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut short: the process died while it wrote this line
        if isinstance(record, dict):
            records.append(record)
    return records


def _memory_signature(faults: Sequence[str]) -> Signature | None:
    """What an access fault says, without addresses, sizes and kernel names, which the minimizer changes."""
    for record in _records(faults):
        if record.get("event") not in ("fault", "overwrite") or "allocation" not in record:
            continue
        origin = "use-after-free" if record.get("state") == "freed" else "out-of-bounds"
        return Signature(kind=Kind.MEMORY, stage=Stage.EXECUTE, origin=origin)
    return None


def _fault_lines(faults: Sequence[str]) -> list[str]:
    """One line for each fault. A signal that faulthandler passed on comes a second time, without its allocation."""
    records = _records(faults)
    return [_fault_line(record) for record in records if "allocation" in record] or [
        _fault_line(record) for record in records
    ]


def _fault_line(record: Mapping[str, Any]) -> str:
    distance = int(record.get("distance", 0))
    where = f"{distance} byte(s) past the end of" if distance > 0 else f"{-distance} byte(s) before the start of"
    if distance == 0:
        where = "inside"
    if "allocation" not in record:
        return f"{record.get('event')}: {record.get('signal')} in kernel {record.get('kernel') or '(none)'}"
    return (
        f"{record.get('event')} in kernel {record.get('kernel') or '(none)'}: "
        f"{where} a {record.get('state')} device allocation of {record.get('size')} bytes"
    )


def _evidence(end: End) -> tuple[str, ...]:
    lines = [str(end)]
    if end.crumbs:
        stage, detail = end.crumbs[-1]
        lines.append(f"last step begun: {stage}" + (f", {detail}" if detail else ""))
    lines.extend(_fault_lines(end.faults))
    printed = [line for line in end.output.splitlines() if line.strip() and not line.startswith(NOISE)]
    shown = printed if len(printed) <= EVIDENCE_LINES else [*printed[:EVIDENCE_LINES], "..."]
    if shown:
        lines.append(PRINTED)
        lines.extend(f"  {line}" for line in shown)
    return tuple(lines)
