"""What the campaign and its fork server say to each other: settings, jobs and replies, each as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from fuzzer.program import Case, Mode
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

Json: TypeAlias = Mapping[str, Any]
"""A JSON object as `json.loads` gives it."""

GIBIBYTE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything about a fork server that can change a verdict, and the limits of its children."""

    target: str = "sim"
    backend: str = "triton_experimental"
    reintroduce: tuple[str, ...] = ()
    """Backend fixes (slug or path) to take back."""
    fix: tuple[str, ...] = ()
    """Backend fixes to apply to a wheel that lacks them."""
    timeout: float = 60.0
    """Seconds that one program may take, with everything it starts."""
    memory: int = 4 * GIBIBYTE
    """Bytes that one program and everything it starts may hold in memory."""

    def __post_init__(self) -> None:
        if self.timeout <= 0:
            raise ValueError(f"a time limit is positive, not {self.timeout}")
        if self.memory <= 0:
            raise ValueError(f"a memory limit is positive, not {self.memory}")

    @property
    def released(self) -> Settings:
        """The same, with nothing taken back: what the wheel does as it was released."""
        return Settings(
            target=self.target, backend=self.backend, fix=self.fix, timeout=self.timeout, memory=self.memory
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Run the program of this seed and index."""

    seed: int
    index: int
    families: tuple[str, ...] = ()
    """Families of operators to draw from; empty means all."""
    config: tuple[tuple[str, bool | int | str], ...] = ()
    """Inductor options to add to the program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """Run this program."""

    case: Case
    keep_kernels: bool = False
    """Somebody looks at this program: send its kernels back, and on a memory fault the interpreter's opinion."""


Job: TypeAlias = Generate | RunCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of one job."""

    verdict: Verdict
    case: Case | None = None
    """The program that ran; None when the child died before it was known."""
    kernels: tuple[tuple[str, str], ...] = ()
    output: str = ""
    """What the program and the compilers printed: the beginning and the end of it."""
    reached: tuple[str, ...] = ()
    """Slugs of the backend fixes of which an edited statement ran."""
    effect: str = ""
    """Digest of kernels, launches and results of the compiled runs; empty when the child died."""
    seconds: float = 0.0
    """From fork to death."""
    peak: int = 0
    """Most bytes the child held in memory at once."""


def encode(record: Settings | Job | Reply) -> str:
    """One line of JSON, without its newline."""
    return json.dumps(asdict(record), separators=(",", ":"))


def decode_settings(data: Json) -> Settings:
    return Settings(
        target=data["target"],
        backend=data["backend"],
        reintroduce=tuple(data["reintroduce"]),
        fix=tuple(data["fix"]),
        timeout=data["timeout"],
        memory=data["memory"],
    )


def decode_job(data: Json) -> Job:
    if "case" in data:
        return RunCase(case=decode_case(data["case"]), keep_kernels=data["keep_kernels"])
    return Generate(
        seed=data["seed"],
        index=data["index"],
        families=tuple(data["families"]),
        config=tuple((name, value) for name, value in data["config"]),
    )


def decode_mode(data: Json) -> Mode:
    return Mode(
        training=data["training"],
        dynamic=data["dynamic"],
        calls=data["calls"],
        config=tuple((name, value) for name, value in data["config"]),
    )


def decode_case(data: Json) -> Case:
    return Case(source=data["source"], mode=decode_mode(data["mode"]))


def decode_signature(data: Json) -> Signature:
    return Signature(kind=Kind(data["kind"]), stage=Stage(data["stage"]), origin=data["origin"])


def decode_verdict(data: Json) -> Verdict:
    return Verdict(
        outcome=Outcome(data["outcome"]),
        signature=None if data["signature"] is None else decode_signature(data["signature"]),
        evidence=tuple(data["evidence"]),
        oracle=data["oracle"],
        seconds=tuple((name, value) for name, value in data["seconds"]),
    )


def decode_reply(data: Json) -> Reply:
    return Reply(
        verdict=decode_verdict(data["verdict"]),
        case=None if data["case"] is None else decode_case(data["case"]),
        kernels=tuple((name, source) for name, source in data["kernels"]),
        output=data["output"],
        reached=tuple(data["reached"]),
        effect=data["effect"],
        seconds=data["seconds"],
        peak=data["peak"],
    )
