"""Target `sim`: target `npu` on the host stand-in, whose records tell stage, kernel and seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fuzzer import simnpu
from fuzzer.program import FuzzerError
from fuzzer.simnpu import preload
from fuzzer.simnpu.record import Event, EventKind, Recorder, recording, subscribe
from fuzzer.targets import npu
from fuzzer.targets.harness import Breadcrumb
from fuzzer.targets.run import Run, Watch
from fuzzer.verdict import Stage

STAGES = {
    "frontend": Stage.FRONTEND,
    "adapter": Stage.ADAPTER,
    "hivm": Stage.HIVM,
    "lowering": Stage.EXECUTE,
    "jit": Stage.EXECUTE,
    "execute": Stage.EXECUTE,
}
"""What the simulator calls its steps. Lowering to host code is its own: a crash there is an execution that failed."""


def prepare(backend: str = "triton_experimental") -> Run:
    """Installs the stand-in and imports torch_npu on it, 5-8 s."""
    try:
        simnpu.install(simnpu.SimOptions(backend=simnpu.Backend(backend)))
    except simnpu.SimulatorError as error:
        raise FuzzerError(str(error)) from error
    return npu.runner("sim", watch)


@dataclass(frozen=True, slots=True)
class Kernels:
    """A simulator's recorder, as a runner reads it."""

    recorder: Recorder

    @property
    def kernels(self) -> tuple[tuple[str, str], ...]:
        return tuple((kernel.name, kernel.source) for kernel in self.recorder.kernels)

    @property
    def launches(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((launch.kernel, launch.grid) for launch in self.recorder.launches)

    @property
    def seconds(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.recorder.stage_seconds.items())


@contextmanager
def watch(breadcrumb: Breadcrumb) -> Iterator[Watch]:
    """Leaves a breadcrumb before each step of each kernel, and collects the kernels.

    Looks for overwritten memory after each kernel, while it is known which one ran, and after the run: a write that
    stays short of the guard page, or into memory that somebody keeps, would else be found late or never.
    """

    def leave(event: Event) -> None:
        if event.kind is EventKind.DONE:
            preload.check_memory()
            breadcrumb(Stage.INDUCTOR, f"after {event.kernel}")
        else:
            breadcrumb(STAGES[event.stage], f"{event.kind} {event.kernel}")

    unsubscribe = subscribe(leave)
    try:
        with recording() as recorder:
            yield Kernels(recorder)
    finally:
        unsubscribe()
        preload.check_memory()
