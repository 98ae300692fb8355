"""The C stand-in: complete for torch_npu, built once, honest about what it does not do, exact about memory."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzer.simnpu import SimOptions, SimulatorError, preload
from fuzzer.simnpu.runtime.build import RUNTIME, build, torch_npu_include
from tests.simnpu.conftest import ROOT, RunPython
from tests.simnpu.elf import undefined_symbols

pytestmark = pytest.mark.sim

NOT_SUPPORTED = 207000
OUT_OF_MEMORY = 207001
DEVICE_EXCEPTION = 507015
INVALID_PARAMETER = 100000

HOST = """
import ctypes, faulthandler, sys
from fuzzer.simnpu import SimOptions, preload
preload.preload(SimOptions())
acl = preload.library()
def malloc(size):
    pointer = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(size), 0) == 0
    return pointer.value
"""


@pytest.fixture(scope="module")
def acl() -> ctypes.CDLL:
    """The stand-in's libascendcl, as torch_npu would find it."""
    library = preload.library()
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


@pytest.fixture
def block(acl: ctypes.CDLL) -> Iterator[int]:
    """The address of 100 bytes of device memory."""
    pointer = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(100), 0) == 0
    assert pointer.value is not None
    yield pointer.value
    acl.aclrtFree(pointer)


def test_every_symbol_that_torch_npu_needs_of_cann_exists(acl: ctypes.CDLL) -> None:
    package = torch_npu_include().parent
    libraries = [*sorted((package / "lib").glob("lib[nt]*.so")), *package.glob("_C*.so")]
    wanted = re.compile(r"acl|Msprof|hccl|Hccl|rt[A-Z]")
    needed = {name for path in libraries for name in undefined_symbols(path) if wanted.match(name)}
    assert {"aclrtMalloc", "rtKernelLaunch", "MsprofReportApi"} <= needed
    assert [name for name in sorted(needed) if not hasattr(acl, name)] == []


def test_the_libraries_that_torch_npu_names_resolve_by_name_and_reach_every_symbol(acl: ctypes.CDLL) -> None:
    for name in preload.NAMED_ONLY:
        assert hasattr(ctypes.CDLL(name), "aclopCompileAndExecute")


def test_what_is_not_modelled_fails_and_names_itself(acl: ctypes.CDLL) -> None:
    assert acl.aclrtMapMem() == NOT_SUPPORTED
    assert acl.aclGetRecentErrMsg() == b"simnpu: aclrtMapMem is not modelled"
    assert acl.aclGetRecentErrMsg() is None
    assert acl.aclrtGetDeviceInfo(0, 405, ctypes.byref(ctypes.c_int64())) == NOT_SUPPORTED


def test_a_device_that_does_not_exist_is_refused(acl: ctypes.CDLL) -> None:
    assert acl.aclrtSetDevice(7) != 0
    assert b"no device 7" in acl.aclGetRecentErrMsg()


def test_fresh_memory_is_full_of_the_poison_byte(block: int) -> None:
    assert ctypes.string_at(block, 100) == bytes([SimOptions().poison]) * 100


def test_an_allocation_ends_at_most_31_bytes_before_the_guard_page(acl: ctypes.CDLL) -> None:
    for size in (1, 31, 32, 33, 100, 4095, 4096, 4097, 70_000):
        pointer = ctypes.c_void_p()
        assert acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(size), 0) == 0
        assert pointer.value is not None
        assert pointer.value % 32 == 0
        assert -(pointer.value + size) % 4096 < 32
        assert preload.find_allocation(pointer.value + size - 1) == (pointer.value, size)
        acl.aclrtFree(pointer)


@pytest.mark.parametrize("offset", [100, 127, -1, -200])
def test_a_byte_written_outside_an_allocation_is_counted_once_and_fails_the_next_synchronization(
    acl: ctypes.CDLL, block: int, offset: int, capfd: pytest.CaptureFixture[str]
) -> None:
    preload.set_kernel("triton_stray")
    ctypes.memset(block + offset, 0, 1)
    preload.set_kernel("")
    assert acl.aclrtSynchronizeDevice() == DEVICE_EXCEPTION
    assert b"written outside" in acl.aclGetRecentErrMsg()
    distance = offset - 99 if offset > 0 else offset
    side = "past the end of" if offset > 0 else "before the start of"
    assert capfd.readouterr().err.startswith(
        f"simnpu: overwrite found after kernel triton_stray: {abs(distance)} byte(s) {side} the device allocation"
    )
    assert acl.aclrtSynchronizeDevice() == 0
    assert preload.check_memory() == 0


def test_a_write_to_freed_memory_is_found_when_its_pages_serve_again(
    acl: ctypes.CDLL, capfd: pytest.CaptureFixture[str]
) -> None:
    pointer = ctypes.c_void_p()
    acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(3000), 0)
    acl.aclrtFree(pointer)
    assert pointer.value is not None
    assert ctypes.string_at(pointer.value, 3000) == bytes([SimOptions().poison]) * 3000
    ctypes.memset(pointer.value, 1, 1)
    before = acl.simnpu_damaged_total()
    again = ctypes.c_void_p()
    for _ in range(2000):
        acl.aclrtMalloc(ctypes.byref(again), ctypes.c_size_t(3000), 0)
        acl.aclrtFree(again)
    assert acl.simnpu_damaged_total() == before + 1
    assert "inside the freed device allocation" in capfd.readouterr().err
    preload.check_memory()


def test_freeing_twice_is_an_error(acl: ctypes.CDLL) -> None:
    pointer = ctypes.c_void_p()
    acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(8), 0)
    assert acl.aclrtFree(pointer) == 0
    assert acl.aclrtFree(pointer) == INVALID_PARAMETER


def test_memory_in_use_is_what_was_allocated_and_not_freed(acl: ctypes.CDLL) -> None:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    acl.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total))
    before = free.value
    pointer = ctypes.c_void_p()
    acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(12_345), 0)
    acl.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total))
    assert before - free.value == 12_345
    acl.aclrtFree(pointer)
    acl.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total))
    assert free.value == before
    assert acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(total.value + 1), 0) == OUT_OF_MEMORY


def test_a_copy_into_too_little_room_is_refused(acl: ctypes.CDLL, block: int) -> None:
    size = ctypes.c_size_t
    assert acl.aclrtMemcpy(ctypes.c_void_p(block), size(4), b"12345678", size(8), 1) == INVALID_PARAMETER


@pytest.mark.parametrize(
    ("access", "distance", "state"),
    [
        ("ctypes.string_at(malloc(64) + 64, 1)", 1, "live"),
        ("ctypes.memset(malloc(64) + 64 + 500, 0, 1)", 501, "live"),
        ("ctypes.string_at(malloc(64) - 4096, 1)", -4096, "live"),
        ("p = malloc(1 << 20); acl.aclrtFree(ctypes.c_void_p(p)); ctypes.string_at(p + 5, 1)", 0, "freed"),
    ],
)
def test_a_stray_access_dies_by_signal_and_names_kernel_allocation_and_distance(
    run_python: RunPython, access: str, distance: int, state: str
) -> None:
    reader, writer = os.pipe()
    code = f"{HOST}\npreload.set_kernel('triton_poi_fused_0')\n{access}"
    done = run_python("-c", code, env={"SIMNPU_FAULT_FD": str(writer)}, pass_fds=(writer,))
    os.close(writer)
    with os.fdopen(reader) as stream:
        record = json.loads(stream.read())
    assert done.returncode == -signal.SIGSEGV
    assert record["event"] == "fault"
    assert record["kernel"] == "triton_poi_fused_0"
    assert (record["distance"], record["state"]) == (distance, state)
    assert record["size"] == (64 if state == "live" else 1 << 20)
    assert "simnpu: SIGSEGV at 0x" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("order", ["before", "after"])
def test_faulthandler_still_prints_its_traceback(run_python: RunPython, order: str) -> None:
    enable = "\nfaulthandler.enable()\n"
    code = (enable if order == "before" else "").join(["import faulthandler", HOST])
    code += (enable if order == "after" else "") + "preload.set_kernel('k')\nctypes.string_at(malloc(8) + 32, 1)"
    done = run_python("-c", code)
    assert done.returncode == -signal.SIGSEGV
    assert "simnpu: SIGSEGV at 0x" in done.stderr
    assert "25 byte(s) past the end of the device allocation" in done.stderr
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_a_signal_from_outside_is_passed_on(run_python: RunPython) -> None:
    done = run_python("-c", f"{HOST}\nimport os, signal\nos.kill(os.getpid(), signal.SIGBUS)")
    assert done.returncode == -signal.SIGBUS


def test_an_integer_division_by_zero_in_native_code_names_the_kernel(run_python: RunPython, tmp_path: Path) -> None:
    source = tmp_path / "divide.c"
    source.write_text('__attribute__((visibility("default"))) int divide(int a, volatile int b) { return a / b; }\n')
    library = build("libdivide.so", [source])
    code = f"{HOST}\npreload.set_kernel('triton_div')\nctypes.CDLL({str(library)!r}).divide(1, 0)"
    done = run_python("-c", code)
    assert done.returncode == -signal.SIGFPE
    assert done.stderr == "simnpu: SIGFPE in kernel triton_div\n"


def test_ten_processes_that_start_together_get_one_whole_library(tmp_path: Path) -> None:
    code = "from fuzzer.simnpu import preload; preload.library(); print(preload.build_runtime()[0])"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(10)
    ]
    printed = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0] * 10
    assert len(printed) == 1
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock")
    assert files == sorted(["libascendcl.so", *preload.NAMED_ONLY])


def test_a_library_is_compiled_again_only_when_its_source_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "x.c"
    source.write_text("int x = 1;\n")
    first = build("libx.so", [source])
    written = first.stat().st_mtime_ns
    assert build("libx.so", [source]) == first
    assert first.stat().st_mtime_ns == written
    source.write_text("int x = 2;\n")
    assert build("libx.so", [source]) != first


def test_a_source_that_does_not_compile_is_one_clear_error_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "bad.c"
    source.write_text("int x = ;\n")
    with pytest.raises(SimulatorError, match=r"could not build libbad\.so: .*bad\.c:1"):
        build("libbad.so", [source])
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SimulatorError, match="set XDG_CACHE_HOME"):
        build("libx.so", [RUNTIME / "soname.c"])
