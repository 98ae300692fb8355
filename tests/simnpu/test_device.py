"""The simulated device keeps exact accounts of memory, time, random numbers and itself."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from fuzzer.simnpu import SimOptions, preload

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("npu")]


def test_random_numbers_follow_the_seed_and_the_saved_state(npu: Any) -> None:
    def draw() -> list[float]:
        x = torch.ones(20, device="npu")
        parts = (
            torch.rand(3, device="npu"),
            torch.randn_like(x),
            F.dropout(x),
            torch.randperm(9, device="npu").float(),
        )
        return torch.cat(parts).tolist()

    torch.manual_seed(5)
    first = draw()
    second = draw()
    torch.manual_seed(5)
    assert draw() == first
    assert second != first
    state = npu.get_rng_state()
    third = draw()
    npu.set_rng_state(state)
    assert draw() == third
    own = torch.Generator("npu").manual_seed(5)
    assert torch.rand(3, device="npu", generator=own).tolist() == first[:3]


def test_drawing_on_the_device_leaves_the_generator_of_the_cpu_alone() -> None:
    state = torch.get_rng_state()
    x = torch.ones(8, device="npu")
    F.scaled_dot_product_attention(x.view(1, 2, 4), x.view(1, 2, 4), x.view(1, 2, 4), dropout_p=0.5)
    F.dropout(x)
    x.normal_()
    assert torch.equal(torch.get_rng_state(), state)


def test_every_tensor_is_one_allocation_of_exactly_its_size() -> None:
    for size in (1, 7, 32, 1000, 4096, 100_000):
        x = torch.empty(size, dtype=torch.uint8, device="npu")
        assert preload.find_allocation(x.data_ptr()) == (x.data_ptr(), size)


def test_an_uninitialised_float_tensor_reads_as_nan() -> None:
    assert SimOptions().poison == 0xFF
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        assert torch.empty(50, dtype=dtype, device="npu").isnan().all()


def test_free_device_memory_falls_by_what_a_tensor_takes_and_rises_when_it_goes(npu: Any) -> None:
    free, total = npu.mem_get_info()
    x = torch.empty(1000, dtype=torch.float32, device="npu")
    assert npu.mem_get_info() == (free - 4000, total)
    del x
    assert npu.mem_get_info() == (free, total)


def test_events_measure_time_in_order_across_streams(npu: Any) -> None:
    first, second, third = (npu.Event(enable_timing=True) for _ in range(3))
    stream = npu.Stream()
    first.record()
    time.sleep(0.02)
    with npu.stream(stream):
        assert npu.current_stream() == stream
        second.record()
    npu.current_stream().wait_event(second)
    third.record()
    third.synchronize()
    assert second.query()
    assert 20 <= first.elapsed_time(second) < 2000
    assert second.elapsed_time(third) >= 0
    assert first.elapsed_time(third) >= first.elapsed_time(second)


def test_the_device_describes_itself_as_the_options_say(npu: Any) -> None:
    options = SimOptions()
    properties = npu.get_device_properties(0)
    assert npu.device_count() == options.devices
    assert (properties.name, npu.get_device_name()) == (options.soc, options.soc)
    assert (properties.cube_core_num, properties.vector_core_num) == (options.cube_cores, options.vector_cores)


def test_a_forked_child_goes_on_with_the_device(npu: Any) -> None:
    x = torch.arange(4.0, device="npu")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            y = x * 2 + torch.ones(4, device="npu")
            npu.synchronize()
            status = 0 if y.tolist() == [1, 3, 5, 7] else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert x.sum().item() == 6


def test_a_small_operator_costs_at_most_forty_microseconds_of_processor_time() -> None:
    x = torch.randn(3, 3, device="npu")

    def one_round() -> float:
        start = time.process_time()
        for _ in range(100):
            x + x
        return (time.process_time() - start) / 100

    assert min(one_round() for _ in range(20)) < 40e-6
