"""Target `npu`: torch_npu's Inductor backends on an Ascend NPU. The same code runs on the simulator, unknowingly."""

from __future__ import annotations

import os
import sys

import torch

from fuzzer.program import FuzzerError
from fuzzer.targets.run import Run, Runner, Watcher, unwatched
from fuzzer.targets.stack import configure_torch, import_or_refuse


def prepare(backend: str = "triton_experimental") -> Run:
    """Imports torch_npu and its Inductor backend. Raises FuzzerError when there is no NPU to run on."""
    os.environ["TORCHINDUCTOR_NPU_BACKEND"] = backend
    import_or_refuse("torch_npu", "target npu needs torch_npu and CANN; without an NPU use --target sim")
    if not torch.get_device_module("npu").is_available():
        raise FuzzerError("torch_npu is installed but sees no NPU: check npu-smi, or use --target sim")
    return runner("npu")


def _end_compile_threads() -> None:
    """The default backend starts a pool of threads at import; with one compile thread nothing uses it."""
    heuristics = sys.modules.get("torch_npu._inductor.runtime.triton_heuristics")
    if heuristics is not None:
        heuristics.compile_thread_pool.pool.shutdown()


def runner(name: str, watcher: Watcher = unwatched) -> Run:
    """What runs cases once torch_npu is imported. Imports the Inductor backend that the environment names."""
    import_or_refuse("torch_npu._inductor", "torch_npu and triton-ascend do not fit together: see `fuzz doctor`")
    _end_compile_threads()
    configure_torch()
    return Runner(name=name, device="npu", watcher=watcher)
