"""Target `cpu`: upstream Inductor's C++ backend on this machine. Needs torch and a C++ compiler, nothing of the NPU."""

from __future__ import annotations

import os
import shutil
import sys

from fuzzer.program import FuzzerError
from fuzzer.targets.run import Run, Runner
from fuzzer.targets.stack import configure_torch


def prepare(backend: str = "") -> Run:
    """Imports torch. `backend` is of no use here. Raises FuzzerError when there is no C++ compiler."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise FuzzerError(f"target cpu compiles with {compiler}, not found: install a C++ compiler or set CXX")
    # Inductor would import Triton to ask it for devices, and an installed triton-ascend would then look for an NPU.
    sys.modules.setdefault("triton", None)  # type: ignore[arg-type]  # None is how an import is blocked
    configure_torch()
    return Runner(name="cpu", device="cpu")
