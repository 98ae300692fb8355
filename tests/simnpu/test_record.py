"""Whoever listens learns what happened to each kernel, and before it happens."""

# Triton kernels are not Python: their parameters have no Python types.
# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

import contextlib

import pytest
import torch
import triton
import triton.language as tl

from fuzzer.simnpu import record
from fuzzer.simnpu.record import Event, EventKind
from tests.simnpu.host_kernels import compile_on_host

pytestmark = pytest.mark.sim


@triton.jit
def tripled(x, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + index, tl.load(x + index) * 3)


@triton.jit
def broken(x):
    tl.store(x, nowhere)  # type: ignore[name-defined]  # noqa: F821


def test_a_compiled_kernel_is_recorded_with_its_source_its_configuration_and_its_intermediate_forms() -> None:
    with record.recording() as recorder:
        compile_on_host(tripled, {"x": "*fp32"}, {"BLOCK": 16}, fit_check=True)
    (kernel,) = recorder.kernels
    assert kernel.name == "tripled"
    assert kernel.status == "ok"
    assert kernel.config == {"BLOCK": 16}
    assert kernel.signature == {"x": "*fp32"}
    assert "tl.store" in kernel.source
    assert "tt.func" in kernel.ttir
    assert "func.func @tripled" in kernel.linalg
    assert {"frontend", "adapter", "hivm", "jit"} <= set(kernel.stage_seconds)
    assert all(seconds >= 0 for seconds in kernel.stage_seconds.values())


def test_launches_are_recorded_with_their_grid_and_the_time_they_took() -> None:
    kernel = compile_on_host(tripled, {"x": "*fp32"}, {"BLOCK": 16})
    x = torch.ones(48)
    with record.recording() as outer:
        kernel[(1, 1, 1)](x)
        with record.recording() as inner:
            kernel[(3, 1, 1)](x)
    kernel[(1, 1, 1)](x)
    assert [launch.grid for launch in outer.launches] == [(1, 1, 1), (3, 1, 1)]
    assert [launch.grid for launch in inner.launches] == [(3, 1, 1)]
    assert inner.stage_seconds.keys() == {"execute"}
    assert x[-1] == 3
    assert x[0] == 27


def test_a_refused_kernel_is_recorded_with_where_and_why() -> None:
    with record.recording() as recorder, contextlib.suppress(triton.CompilationError):
        compile_on_host(broken, {"x": "*fp32"})
    (kernel,) = recorder.kernels
    assert kernel.status.startswith("frontend NameError: ")
    assert kernel.linalg == ""


def test_events_come_before_the_steps_they_name() -> None:
    events: list[Event] = []
    x = torch.ones(16)
    seen: list[float] = []

    def listen(event: Event) -> None:
        events.append(event)
        seen.append(x[0].item())

    stop = record.subscribe(listen)
    try:
        compile_on_host(tripled, {"x": "*fp32"}, {"BLOCK": 16})[(1, 1, 1)](x)
    finally:
        stop()
    compile_on_host(tripled, {"x": "*fp32"}, {"BLOCK": 16})
    stages = [event.stage for event in events if event.kind is EventKind.COMPILE]
    assert stages[:2] == ["frontend", "adapter"]
    assert "tl.store" in events[0].source
    assert not any(event.source for event in events[1:])
    assert [event.kind for event in events[-2:]] == [EventKind.LAUNCH, EventKind.DONE]
    assert seen[-2:] == [1.0, 3.0]
    assert {event.kernel for event in events} == {"tripled"}
