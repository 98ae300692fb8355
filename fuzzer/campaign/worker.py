"""The campaign's side of the fork servers: a pool that runs many jobs at once and hands out futures."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from fuzzer.backports import StrEnum
from fuzzer.campaign import processes
from fuzzer.campaign.protocol import Job, Reply, Settings, decode_reply, encode
from fuzzer.program import FuzzerError
from fuzzer.verdict import Outcome, Verdict

ATTEMPTS = 2
"""How often a job is given to a fork server that dies on it before it counts as lost."""

CLOSE_SECONDS = 5.0
"""How long a fork server may take to end its children and itself."""

ENVIRONMENT: Mapping[str, str] = {
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
"""Nothing is imported that the target does not ask for; a process that forks has one thread; sets have one order."""


class Lane(StrEnum):
    """What a job is for. New programs and failing ones each get their share of the workers' time."""

    EXPLORE = "explore"
    """A new program."""
    CONFIRM = "confirm"
    """A failing program again, or on the released wheel: few, and much depends on them, so they go before SHRINK."""
    SHRINK = "shrink"
    """A candidate of the minimizer."""


class ForkServer:
    """One fork server process, seen from its parent. Starts at once; jobs may be sent before it is ready."""

    def __init__(self, settings: Settings, receive: Callable[[ForkServer, Any], None]) -> None:
        self.settings = settings
        self.ready = False
        self.error = ""
        """Why it could not start, in its own words."""
        self._pids: dict[int, int] = {}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzzer.campaign.forkserver", encode(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C reaches the parent alone
            env={**os.environ, **ENVIRONMENT},
        )
        self._reader = threading.Thread(target=self._read, args=(receive,), name="fork server reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: int, job: Job) -> None:
        """Raises BrokenPipeError when the server is gone; its end is then reported through `receive` as well."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"[{number},{encode(job)}]\n".encode())
        self._process.stdin.flush()

    def log(self, lines: int = 20) -> str:
        """The last lines that the server printed; to be asked before its end is told."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), 1 << 14, max(0, size - (1 << 14)))
        return "\n".join(tail.decode(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        """Ends the server and everything it started."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended first, with a job unread
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            processes.kill_family(self._process.pid)
            self._process.wait()
        self._reader.join()

    def _read(self, receive: Callable[[ForkServer, Any], None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, what, content = json.loads(line)
            match what:
                case "ready":
                    self.ready = True
                case "started":
                    self._pids[number] = content
                case "error" if number is None:
                    self.error = content
                case _:
                    self._pids.pop(number, None)
                    receive(self, (number, what, content))
        for pid in self._pids.values():  # it was killed: what it ran must not go on
            processes.kill_group(pid)
        self._process.wait()
        receive(self, None)
        assert self._process.stdin is not None
        for file in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):  # a job that it did not read
                file.close()


@dataclass(slots=True, kw_only=True)
class _Task:
    job: Job
    settings: Settings
    lane: Lane
    future: Future[Reply] = field(default_factory=Future)
    attempts: int = 0
    begun: float = 0.0
    server: ForkServer | None = None


class Pool:
    """Runs up to `workers` jobs at once. Fork servers start when their settings are first asked for.

    `examine_share` is the part of the workers' time that examining findings may take while programs wait.
    """

    def __init__(self, settings: Settings, *, workers: int, examine_share: float = 0.5) -> None:
        if workers < 1:
            raise FuzzerError(f"a campaign needs at least one worker, not {workers}")
        self.settings = settings
        self.workers = workers
        self._share = examine_share
        self._lock = threading.RLock()
        self._waiting: dict[Lane, deque[_Task]] = {lane: deque() for lane in Lane}
        self._running: dict[int, _Task] = {}
        self._servers: dict[Settings, ForkServer] = {}
        self._spent: dict[Lane, float] = dict.fromkeys(Lane, 0.0)
        self._numbers = 0
        self._closed = False

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, job: Job, *, lane: Lane = Lane.EXPLORE, settings: Settings | None = None) -> Future[Reply]:
        """Queues a job. Its future raises FuzzerError if the platform cannot be prepared or the text is no program."""
        task = _Task(job=job, settings=settings or self.settings, lane=lane)
        with self._lock:
            if self._closed:
                task.future.cancel()
                return task.future
            self._waiting[lane].append(task)
            self._pump()
        return task.future

    def run(self, jobs: Sequence[Job], *, lane: Lane = Lane.CONFIRM, settings: Settings | None = None) -> list[Reply]:
        """Runs a batch side by side, and waits for all of it. Raises CancelledError when the pool closes meanwhile."""
        futures = [self.submit(job, lane=lane, settings=settings) for job in jobs]
        return [future.result() for future in futures]

    @property
    def running(self) -> int:
        """Programs that run now."""
        return len(self._running)

    @property
    def is_ready(self) -> bool:
        """Whether some fork server has imported its platform."""
        return any(server.ready for server in self._servers.values())

    @property
    def servers(self) -> tuple[ForkServer, ...]:
        return tuple(self._servers.values())

    def close(self) -> None:
        """Ends every fork server and child; futures that wait are cancelled."""
        with self._lock:
            self._closed = True
            waiting = [task for queue in self._waiting.values() for task in queue]
            for queue in self._waiting.values():
                queue.clear()
            servers = list(self._servers.values())
        for task in waiting:
            task.future.cancel()
        for server in servers:
            server.close()

    def _pump(self) -> None:
        """Starts what can start. Holds the lock."""
        while not self._closed and len(self._running) < self.workers and (task := self._next()) is not None:
            if not task.future.running() and not task.future.set_running_or_notify_cancel():
                continue
            self._numbers += 1
            server = self._servers.get(task.settings)
            if server is None or not server.is_alive:
                server = self._servers[task.settings] = ForkServer(task.settings, self._receive)
            task.attempts += 1
            task.begun = time.monotonic()
            task.server = server
            self._running[self._numbers] = task
            try:
                server.send(self._numbers, task.job)
            except BrokenPipeError:
                continue  # it just died; its reader tells, and the job is given to the next server

    def _next(self) -> _Task | None:
        explore = self._waiting[Lane.EXPLORE]
        examine = self._waiting[Lane.CONFIRM] or self._waiting[Lane.SHRINK]
        if not explore or not examine:
            queue = explore or examine
            return queue.popleft() if queue else None
        total = sum(self._spent.values())
        examining = total - self._spent[Lane.EXPLORE]
        return (examine if examining <= self._share * total else explore).popleft()

    def _receive(self, server: ForkServer, message: tuple[int, str, Any] | None) -> None:
        """Runs in the reader thread of a server; None means that the server is gone."""
        if message is None:
            self._bury(server)
            return
        number, what, content = message
        with self._lock:
            task = self._running.pop(number)
            self._spent[task.lane] += time.monotonic() - task.begun
            self._pump()
        if what == "error":
            task.future.set_exception(FuzzerError(content))
        else:
            task.future.set_result(decode_reply(content))

    def _bury(self, server: ForkServer) -> None:
        ended: list[_Task] = []
        with self._lock:
            for number, task in list(self._running.items()):
                if task.server is not server:
                    continue
                del self._running[number]
                if server.ready and not self._closed and task.attempts < ATTEMPTS:
                    self._waiting[task.lane].appendleft(task)
                else:
                    ended.append(task)
            if not server.ready:  # others would fail the same way
                for queue in self._waiting.values():
                    ended.extend(task for task in queue if task.settings == server.settings)
                    kept = [task for task in queue if task.settings != server.settings]
                    queue.clear()
                    queue.extend(kept)
            closed = self._closed
            self._pump()
        for task in ended:
            self._end(task, server, closed)

    def _end(self, task: _Task, server: ForkServer, closed: bool) -> None:
        if not task.future.running() and not task.future.set_running_or_notify_cancel():
            return
        if closed:
            task.future.set_exception(CancelledError())
        elif server.ready:
            lost = f"the fork server died {task.attempts} times while it ran this program"
            verdict = Verdict(outcome=Outcome.LOST, evidence=(lost, server.log()), oracle="process")
            task.future.set_result(Reply(verdict=verdict))
        else:
            reason = server.error or f"the fork server ended before it was ready:\n{server.log()}"
            task.future.set_exception(FuzzerError(reason))
