"""The fork server: imports the stack once, then runs every program in a forked child of its own.

`python -m fuzzer.campaign.forkserver SETTINGS` reads jobs from standard input and writes replies to standard output,
both lines of JSON. It ends, with everything it started, as soon as its standard input closes. A child is killed with
all its descendants when it passes its time or memory limit; its crash is a verdict (`fuzzer.campaign.postmortem`).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fuzzer.campaign import processes
from fuzzer.campaign.child import TRACEBACK_SIGNAL, Judge, Judged, live
from fuzzer.campaign.postmortem import Cause, End, explain, with_faults, with_opinion
from fuzzer.campaign.protocol import (
    Job,
    Reply,
    RunCase,
    Settings,
    decode_case,
    decode_job,
    decode_reply,
    decode_settings,
    encode,
)
from fuzzer.campaign.warmup import warm_up
from fuzzer.program import Case, FuzzerError
from fuzzer.verdict import Kind, Outcome, Stage, Verdict

FAULT_FD = 99
"""The descriptor that the simulator writes memory faults to; each child has its own pipe there."""

SIMULATED = "sim"
"""The target that tells kernels and can leave them to an interpreter."""

LOOK_EVERY = 0.2
"""Seconds between two looks at clocks and memory."""

LAST_WORDS = 0.5
"""Seconds between the request for a traceback and the kill."""

HEAD_BYTES = 4 << 10
TAIL_BYTES = 16 << 10


class Output:
    """The beginning and the end of what a child printed; the middle is dropped."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > TAIL_BYTES:
            self._dropped += len(self._tail) - TAIL_BYTES
            self._tail = self._tail[-TAIL_BYTES:]

    def __str__(self) -> str:
        gap = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (self._head + gap + self._tail).decode(errors="replace")


@dataclass(slots=True, kw_only=True)
class Child:
    """A running child, from the server's side."""

    number: int
    pid: int
    pidfd: int
    begun: float
    deadline: float
    scratch: Path
    pipes: dict[str, int]
    job: Job
    first: Reply | None = None
    """What the program's own run said, if this is the run by the interpreter that is to explain it."""
    cause: Cause | None = None
    """Why the server killed it, if it did."""
    warned: bool = False
    messages: bytes = b""
    faults: bytes = b""
    output: Output = field(default_factory=Output)
    peak: int = 0


class Server:
    """Runs children side by side and reports on each. One thread; the selector is its only wait."""

    def __init__(self, settings: Settings, judge: Judge, replies: int, scratch: Path) -> None:
        self._settings = settings
        self._judge = judge
        self._replies = replies
        self._scratch = scratch
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, Child] = {}
        self._requests = b""
        self._open = True

    def serve(self) -> None:
        """Runs until standard input closes."""
        os.set_blocking(0, False)
        self._selector.register(0, selectors.EVENT_READ, self._read_requests)
        while self._open:
            for key, _ in self._selector.select(LOOK_EVERY if self._children else None):
                # A handler may have closed the file of a later event in the same batch.
                if key.fd in self._selector.get_map():
                    key.data()
            self._look()

    def close(self) -> None:
        """Ends every child."""
        for child in self._children.values():
            processes.kill_family(child.pid)
        self._reap()

    def _send(self, number: int, what: str, content: object) -> None:
        line = (json.dumps([number, what, content], separators=(",", ":")) + "\n").encode()
        try:
            while line:
                line = line[os.write(self._replies, line) :]
        except BrokenPipeError:
            self._open = False  # nobody listens any more

    def _read_requests(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self._open = False
            return
        *lines, self._requests = (self._requests + data).split(b"\n")
        for line in lines:
            number, request = json.loads(line)
            self._start(number, decode_job(request))

    def _start(self, number: int, job: Job, first: Reply | None = None) -> None:
        scratch = self._scratch / str(number)
        scratch.mkdir()
        pipes = {name: os.pipe() for name in ("messages", "output", "faults")}
        parent = os.getpid()
        begun = time.monotonic()
        pid = os.fork()
        if pid == 0:
            for child in self._children.values():
                for descriptor in (child.pidfd, *child.pipes.values()):
                    os.close(descriptor)
            self._selector.close()
            os.close(self._replies)
            for reading, _ in pipes.values():
                os.close(reading)
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            _use_scratch(scratch)
            live(
                job,
                self._judge,
                messages=pipes["messages"][1],
                output=pipes["output"][1],
                fault=(pipes["faults"][1], FAULT_FD),
                parent=parent,
                simulated=self._settings.target == SIMULATED,
                interpreted=first is not None,
            )
        for _, writing in pipes.values():
            os.close(writing)
        child = Child(
            number=number,
            pid=pid,
            pidfd=os.pidfd_open(pid),
            begun=begun,
            deadline=begun + self._settings.timeout,
            scratch=scratch,
            pipes={name: reading for name, (reading, _) in pipes.items()},
            job=job,
            first=first,
        )
        self._children[pid] = child
        for name, reading in child.pipes.items():
            os.set_blocking(reading, False)
            self._selector.register(reading, selectors.EVENT_READ, self._reader(child, name))
        self._selector.register(child.pidfd, selectors.EVENT_READ, lambda: self._bury(child))
        self._send(number, "started", pid)

    def _reader(self, child: Child, name: str) -> Callable[[], None]:
        def read() -> None:
            if not self._drain(child, name):
                self._selector.unregister(child.pipes[name])

        return read

    def _drain(self, child: Child, name: str) -> bool:
        """Takes what is in a pipe now; False when nothing can come any more."""
        while True:
            try:
                data = os.read(child.pipes[name], 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            match name:
                case "messages":
                    child.messages += data
                case "faults":
                    child.faults += data
                case _:
                    child.output.add(data)
                    return True  # a child that prints without end must not keep the server from its clock

    def _look(self) -> None:
        now = time.monotonic()
        for child in self._children.values():
            if child.cause is not None:
                continue
            if now >= child.deadline and not child.warned:
                child.warned = True
                with contextlib.suppress(ProcessLookupError):  # it may just have ended
                    os.kill(child.pid, TRACEBACK_SIGNAL)
            elif now >= child.deadline + LAST_WORDS:
                child.cause = Cause.TIMEOUT
                processes.kill_family(child.pid)
                continue
            held = processes.resident_bytes(child.pid)
            child.peak = max(child.peak, held)
            if held > self._settings.memory:
                child.cause = Cause.MEMORY
                processes.kill_family(child.pid)

    def _bury(self, child: Child) -> None:
        """Reports on a child that ended, and removes every trace of it."""
        _, status, usage = os.wait4(child.pid, 0)
        del self._children[child.pid]
        processes.kill_group(child.pid)
        self._reap()
        self._selector.unregister(child.pidfd)
        os.close(child.pidfd)
        for name, reading in child.pipes.items():
            self._drain(child, name)
            if reading in self._selector.get_map():
                self._selector.unregister(reading)
            os.close(reading)
        shutil.rmtree(child.scratch, ignore_errors=True)
        ended = self._conclude(child, status, max(child.peak, usage.ru_maxrss << 10))
        if child.first is not None:
            verdict = with_opinion(child.first.verdict, ended.verdict if isinstance(ended, Reply) else None)
            ended = replace(child.first, verdict=verdict)
        elif isinstance(ended, Reply) and self._needs_opinion(child.job, ended.verdict):
            self._start(child.number, child.job, ended)
            return
        match ended:
            case Reply():
                self._send(child.number, "reply", json.loads(encode(ended)))
            case _:
                self._send(child.number, "error", ended)

    def _needs_opinion(self, job: Job, verdict: Verdict) -> bool:
        """Whether somebody looks at a memory fault of a kernel whose source an interpreter can check."""
        looked_at = isinstance(job, RunCase) and job.keep_kernels and self._settings.target == SIMULATED
        return looked_at and verdict.signature is not None and verdict.signature.kind is Kind.MEMORY

    def _conclude(self, child: Child, status: int, peak: int) -> Reply | str:
        """What a child said, or what its end says; a text is an error that is not the program's."""
        crumbs: list[tuple[Stage, str]] = []
        reply: Reply | None = None
        reached: list[str] = []
        failed: tuple[str, ...] = ()
        kernels: dict[str, str] = {}
        case = child.job.case if isinstance(child.job, RunCase) else None
        *lines, _ = child.messages.split(b"\n")
        for line in lines:
            what, content = json.loads(line)
            match what:
                case "step":
                    crumbs.append((Stage(content[0]), content[1]))
                case "kernel":
                    kernels[content[0]] = content[1]
                case "case":
                    case = decode_case(content)
                case "reached":
                    reached.append(content)
                case "reply":
                    reply = decode_reply(content)
                case "failed":
                    failed = tuple(content)
                case _:
                    return str(content)
        signalled = os.WIFSIGNALED(status)
        limit = (
            f"{self._settings.timeout:g} s" if child.cause is Cause.TIMEOUT else f"{self._settings.memory >> 20} MiB"
        )
        end = End(
            cause=child.cause or (Cause.SIGNAL if signalled else Cause.EXIT),
            status=os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status),
            crumbs=tuple(crumbs),
            faults=tuple(child.faults.decode(errors="replace").splitlines()),
            output=str(child.output),
            limit=limit,
        )
        if reply is not None:
            verdict = with_faults(reply.verdict, end)
        elif failed:
            verdict = Verdict(outcome=Outcome.LOST, evidence=failed, oracle="process")
        else:
            verdict = explain(end)
        wanted = verdict.outcome is Outcome.BUG or (isinstance(child.job, RunCase) and child.job.keep_kernels)
        return Reply(
            verdict=verdict,
            case=case if reply is None else reply.case,
            kernels=tuple(kernels.items()) if wanted else (),
            output=str(child.output),
            reached=tuple(reached),
            effect="" if reply is None else reply.effect,
            seconds=time.monotonic() - child.begun,
            peak=peak,
        )

    def _reap(self) -> None:
        """Ends and reaps what dead children left behind: their descendants became ours."""
        for orphan in processes.children(os.getpid()):
            if orphan not in self._children:
                processes.kill_family(orphan)
        with contextlib.suppress(ChildProcessError):  # there is no child at all
            for orphan in processes.children(os.getpid()):
                if orphan not in self._children:
                    os.waitpid(orphan, 0)


def _use_scratch(folder: Path) -> None:
    """Temporary files and Inductor's generated code go where they are removed with the child."""
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")


def prepare(settings: Settings) -> Judge:
    """Edits the backend as the settings say, imports the platform, and gives the function that children run."""
    if settings.reintroduce or settings.fix:
        from fuzzer import fixes

        fixes.install([fixes.find(name) for name in settings.reintroduce], [fixes.find(name) for name in settings.fix])
    from fuzzer.targets import platform

    run = platform(settings.target).prepare(settings.backend)
    from fuzzer import oracles

    def judge(case: Case, breadcrumb: Callable[[Stage, str], None]) -> Judged:
        observations = run(case, breadcrumb, oracles.settled)
        breadcrumb(Stage.JUDGE, "")
        begun = time.monotonic()
        verdict = oracles.judge(observations)
        spent = (*observations.reference.seconds, ("judge", time.monotonic() - begun))
        return Judged(verdict=replace(verdict, seconds=spent), effect=observations.effect)

    return judge


def main(arguments: list[str]) -> int:
    """Exit status 0 when the parent closed our input, 2 when the platform could not be prepared."""
    settings = decode_settings(json.loads(arguments[0]))
    replies = os.dup(1)
    os.dup2(2, 1)  # what libraries print while they are imported must not mix with replies
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    processes.adopt_orphans()
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), FAULT_FD)
    os.environ["SIMNPU_FAULT_FD"] = str(FAULT_FD)
    scratch = Path(tempfile.mkdtemp(prefix="npu-triton-fuzz-"))
    try:
        try:
            judge = prepare(settings)
            warm_up(settings.target, judge)
            if (threads := processes.thread_count()) > 1:
                raise FuzzerError(
                    f"target {settings.target} started {threads - 1} thread(s) while it was prepared: cannot fork"
                )
        except FuzzerError as error:
            os.write(replies, (json.dumps([None, "error", str(error)]) + "\n").encode())
            return 2
        gc.collect()
        gc.freeze()  # so that a child's collections do not copy the parent's pages
        os.write(replies, (json.dumps([None, "ready", None]) + "\n").encode())
        server = Server(settings, judge, replies, scratch)
        try:
            server.serve()
        finally:
            server.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
