"""What a forked child does: one program from its text to its verdict, telling each step before it begins."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from fuzzer import fixes
from fuzzer.campaign.processes import die_with
from fuzzer.campaign.protocol import Generate, Job, Reply, RunCase, encode
from fuzzer.program import Case, FuzzerError
from fuzzer.verdict import Stage, Verdict

TRACEBACK_SIGNAL = signal.SIGUSR2
"""Makes a child that takes too long print where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one program, and what its compiled runs did."""

    verdict: Verdict
    effect: str
    """Digest of kernels, launches and results."""


Judge: TypeAlias = Callable[[Case, Callable[[Stage, str], None]], Judged]
"""Runs a program everywhere and looks at what came of it; is told each step before it begins."""


def live(
    job: Job,
    judge: Judge,
    *,
    messages: int,
    output: int,
    fault: tuple[int, int],
    parent: int,
    simulated: bool = False,
    interpreted: bool = False,
) -> NoReturn:
    """The whole life of a child after the fork. Never returns.

    `messages` and `output` are the ends of pipes to write to; `fault` is such an end and the number it has to have.
    On the simulator (`simulated`) it also tells each kernel's source, and may leave kernels to Triton's interpreter.
    """
    os.setsid()
    die_with(parent)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(*fault)
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115  # lives as long as the child
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    faulthandler.enable(file=2)
    faulthandler.register(TRACEBACK_SIGNAL, file=2, all_threads=True)

    def tell(what: str, content: object) -> None:
        line = (json.dumps([what, content], separators=(",", ":")) + "\n").encode()
        while line:
            line = line[os.write(messages, line) :]

    def breadcrumb(stage: Stage, detail: str) -> None:
        tell("step", [stage, detail])

    if simulated:
        _tell_kernels(tell)
    if interpreted:
        from fuzzer.simnpu.driver import run_kernels
        from fuzzer.simnpu.options import Executor

        run_kernels(executor=Executor.INTERPRETER)
    fixes.on_reach(lambda slug: tell("reached", slug))
    try:
        tell("reply", json.loads(encode(_reply(job, judge, breadcrumb, tell))))
    except FuzzerError as error:
        tell("error", str(error))
    except BaseException as error:
        # Our own fault, or a SystemExit of the program under test: said as it is, as a program that was lost.
        lines = "".join(traceback.format_exception(error)).splitlines()
        tell("failed", [f"the fuzzer itself failed: {type(error).__name__}: {error}", *lines[-30:]])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _tell_kernels(tell: Callable[[str, object], None]) -> None:
    """Tells each kernel's source before it is compiled, so that a dead child's verdict comes with its kernels too."""
    from fuzzer.simnpu.record import Event, subscribe

    told: set[tuple[str, str]] = set()

    def leave(event: Event) -> None:
        kernel = (event.kernel, event.source)
        if event.source and kernel not in told:
            told.add(kernel)
            tell("kernel", kernel)

    subscribe(leave)


def _reply(
    job: Job, judge: Judge, breadcrumb: Callable[[Stage, str], None], tell: Callable[[str, object], None]
) -> Reply:
    seconds: tuple[tuple[str, float], ...] = ()
    match job:
        case RunCase():
            case = job.case
        case Generate():
            from fuzzer.generators import generate
            from fuzzer.source import case_of

            begun = time.monotonic()
            more = (job.families,) if job.families else ()
            case = case_of(generate(job.seed, job.index, *more))
            if job.config:
                case = replace(case, mode=replace(case.mode, config=(*case.mode.config, *job.config)))
            seconds = (("generate", time.monotonic() - begun),)
            tell("case", json.loads(encode(RunCase(case=case)))["case"])
    judged = judge(case, breadcrumb)
    verdict = replace(judged.verdict, seconds=(*seconds, *judged.verdict.seconds))
    return Reply(verdict=verdict, case=case, effect=judged.effect)
