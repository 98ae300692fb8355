"""Loads the C stand-in for CANN before torch_npu, and is the typed door to the functions it adds."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

from fuzzer.simnpu.options import SimOptions
from fuzzer.simnpu.runtime.build import RUNTIME, build, torch_npu_include

NAMED_ONLY = (
    "libhccl.so",
    "libacl_op_compiler.so",
    "libge_runner.so",
    "libgraph.so",
    "libacl_tdt_channel.so",
)
"""Libraries that torch_npu names as needed; all symbols it takes from them are in the stand-in's libascendcl.so."""

TRAILING_PADDING = 32
"""Bytes that torch_npu adds to every allocation request while its caching allocator is off."""

SOURCES = ("memory.c", "fault.c", "device.c", "unmodelled.c")


def build_runtime() -> tuple[Path, ...]:
    """Compiles (or finds) the stand-in libraries, the one with the symbols first."""
    main = build(
        "libascendcl.so",
        [RUNTIME / name for name in SOURCES],
        include=[torch_npu_include()],
        flags=["-Wno-unused-const-variable", "-pthread"],
        headers=[RUNTIME / "simnpu.h"],
    )
    rest = (build(name, [RUNTIME / "soname.c"], flags=["-Wl,--no-as-needed", str(main)]) for name in NAMED_ONLY)
    return (main, *rest)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The stand-in's libascendcl.so, loaded with global visibility together with its empty siblings."""
    paths = build_runtime()
    loaded = [ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in paths]
    main = loaded[0]
    main.simnpu_configure.argtypes = [
        ctypes.c_char_p,
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_ubyte,
        ctypes.c_size_t,
    ]
    main.simnpu_configure.restype = None
    main.simnpu_set_kernel.argtypes = [ctypes.c_char_p]
    main.simnpu_set_kernel.restype = None
    main.simnpu_watch_faults.argtypes = []
    main.simnpu_watch_faults.restype = None
    main.simnpu_set_fault_fd.argtypes = [ctypes.c_int]
    main.simnpu_set_fault_fd.restype = None
    for name in ("simnpu_check_memory", "simnpu_damaged_total", "simnpu_live_blocks"):
        getattr(main, name).argtypes = []
        getattr(main, name).restype = ctypes.c_size_t
    main.simnpu_find.argtypes = [
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    main.simnpu_find.restype = ctypes.c_int
    return main


def preload(options: SimOptions) -> None:
    """Loads and configures the stand-in and puts its fault handlers in place. Call before torch_npu is imported."""
    runtime = library()
    runtime.simnpu_configure(
        options.soc.encode(),
        options.devices,
        options.cube_cores,
        options.guard,
        options.poison,
        TRAILING_PADDING,
    )
    runtime.simnpu_watch_faults()


def set_kernel(name: str) -> None:
    """Names the kernel that runs from now on, for fault records; "" when none does."""
    library().simnpu_set_kernel(name.encode())


def check_memory() -> int:
    """Looks at the canaries around every device allocation; gives how many were damaged since the last look.

    Each one is told on stderr and on the descriptor `SIMNPU_FAULT_FD`, as a line of JSON.
    """
    found: int = library().simnpu_check_memory()
    return found


def find_allocation(address: int) -> tuple[int, int] | None:
    """Start and size in bytes of the live device allocation that holds `address`, or None."""
    start, size = ctypes.c_size_t(), ctypes.c_size_t()
    if not library().simnpu_find(address, ctypes.byref(start), ctypes.byref(size)):
        return None
    return start.value, size.value


def live_allocations() -> int:
    """How many device allocations are live."""
    found: int = library().simnpu_live_blocks()
    return found


def send_faults_to(fd: int) -> None:
    """Sends fault records to this descriptor from now on (-1 for none), as `SIMNPU_FAULT_FD` does at start."""
    library().simnpu_set_fault_fd(fd)
