"""Target `sim` hears of what kernels do to memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from fuzzer.simnpu import preload, record
from fuzzer.targets import sim

pytestmark = pytest.mark.sim


@pytest.fixture
def block() -> Iterator[int]:
    """The address of 30 bytes of device memory."""
    pointer = ctypes.c_void_p()
    assert preload.library().aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(30), 0) == 0
    assert pointer.value is not None
    yield pointer.value
    preload.library().aclrtFree(pointer)


def launch(kernel: str, write: int = 0) -> None:
    """A launch that writes one byte at an address, or nothing."""

    def run() -> None:
        if write:
            ctypes.memset(write, 1, 1)

    preload.set_kernel(kernel)
    record.launched(kernel, (1, 1, 1), run)
    preload.set_kernel("")


def test_a_byte_past_a_tensor_is_told_with_the_kernel_that_wrote_it(
    block: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with sim.watch(lambda stage, detail: None):
        launch("triton_stray", block + 30)
        launch("triton_next")
    told = capfd.readouterr().err
    assert told.startswith("simnpu: overwrite found after kernel triton_stray: 1 byte(s) past the end of the device")
    assert told.count("\n") == 1


def test_what_is_overwritten_between_kernels_is_told_at_the_end_of_the_run(
    block: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with sim.watch(lambda stage, detail: None):
        launch("triton_before")
        ctypes.memset(block - 1, 1, 1)
        assert not capfd.readouterr().err
    assert "1 byte(s) before the start of the device allocation" in capfd.readouterr().err
