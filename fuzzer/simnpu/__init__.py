"""A host stand-in for an Ascend NPU: runs the released torch_npu, triton-ascend and ascendnpu-ir without a device."""

from __future__ import annotations

from fuzzer.simnpu.installation import install, installed_options
from fuzzer.simnpu.options import Backend, Executor, SimOptions, SimulatorError

__all__ = ["Backend", "Executor", "SimOptions", "SimulatorError", "install", "installed_options"]
