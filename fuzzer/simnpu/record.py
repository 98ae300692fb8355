"""What happened to the kernels of this process: compiled, refused, launched, and how long each stage took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from fuzzer.simnpu.toolchain import CompileStage


class EventKind(str, Enum):
    """What is about to happen to a kernel, or has."""

    COMPILE = "compile"
    LAUNCH = "launch"
    DONE = "done"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A breadcrumb, given *before* the step it names, so that whoever keeps the last one can attribute a crash."""

    kind: EventKind
    kernel: str
    stage: str
    """A `CompileStage`, or `jit` for the host code generator."""
    source: str = ""
    """The Triton source, given once, before the first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecord:
    """One kernel that was compiled in one configuration, or could not be."""

    name: str
    source: str
    """The Triton source, as torch_npu generated it."""
    signature: Mapping[str, str]
    config: Mapping[str, object]
    """Values of the kernel's constexpr parameters: block sizes."""
    stage_seconds: Mapping[str, float]
    status: str
    """`ok`, or the stage and origin of the failure."""
    ttir: str
    linalg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """One launch of a kernel over its grid."""

    kernel: str
    grid: tuple[int, int, int]
    seconds: float


@dataclass(slots=True)
class Recorder:
    """Everything that happened while it was listening."""

    kernels: list[KernelRecord] = field(default_factory=list)
    launches: list[LaunchRecord] = field(default_factory=list)

    @property
    def stage_seconds(self) -> dict[str, float]:
        """Seconds per stage over all kernels, the execution of launches under `execute`."""
        total: dict[str, float] = {}
        for kernel in self.kernels:
            for stage, seconds in kernel.stage_seconds.items():
                total[stage] = total.get(stage, 0.0) + seconds
        if self.launches:
            total[CompileStage.EXECUTE.value] = sum(launch.seconds for launch in self.launches)
        return total


_recorders: list[Recorder] = []
_subscribers: list[Callable[[Event], None]] = []


@contextmanager
def recording() -> Iterator[Recorder]:
    """Collect the kernels compiled and launched in this process until the block ends; blocks may nest."""
    recorder = Recorder()
    _recorders.append(recorder)
    try:
        yield recorder
    finally:
        _recorders[:] = [other for other in _recorders if other is not recorder]


def subscribe(callback: Callable[[Event], None]) -> Callable[[], None]:
    """Call `callback` before each step of each kernel; returns the function that ends it."""
    _subscribers.append(callback)
    return lambda: _subscribers.remove(callback)


def announce(kind: EventKind, kernel: str, stage: str, source: str = "") -> None:
    """Tell the subscribers what is about to happen."""
    if _subscribers:
        event = Event(kind=kind, kernel=kernel, stage=stage, source=source)
        for callback in tuple(_subscribers):
            callback(event)


@contextmanager
def timed(kernel: str, stage: str, seconds: dict[str, float], source: str = "") -> Iterator[None]:
    """Announce one compile stage, and add how long it took to `seconds`."""
    announce(EventKind.COMPILE, kernel, stage, source)
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - start


def add_kernel(record: Callable[[], KernelRecord]) -> None:
    """Hand a kernel to every recorder; the record is only built if somebody listens."""
    if _recorders:
        built = record()
        for recorder in _recorders:
            recorder.kernels.append(built)


def launched(kernel: str, grid: tuple[int, int, int], run: Callable[[], None]) -> None:
    """Run one launch between its two announcements, and record it."""
    if not _recorders and not _subscribers:
        run()
        return
    announce(EventKind.LAUNCH, kernel, CompileStage.EXECUTE.value)
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    for recorder in _recorders:
        recorder.launches.append(LaunchRecord(kernel=kernel, grid=grid, seconds=seconds))
    announce(EventKind.DONE, kernel, CompileStage.EXECUTE.value)
