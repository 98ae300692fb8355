"""Target `cpu`: upstream Inductor's C++ backend on this machine. Needs torch and a C++ compiler, nothing of the NPU."""

from __future__ import annotations

import os
import shutil

import torch

from fuzzer.program import FuzzerError
from fuzzer.targets.run import Run, Runner
from fuzzer.targets.stack import configure_torch


def prepare(backend: str = "") -> Run:
    """Imports torch and warms the C++ compiler's precompiled headers up. `backend` is of no use here."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise FuzzerError(f"target cpu compiles with {compiler}, not found: install a C++ compiler or set CXX")
    configure_torch()
    _warm_up()
    return Runner(name="cpu", device="cpu")


def _warm_up() -> None:
    """Compiles one function: probes the vector instructions and precompiles headers once for all forked children."""
    torch.compile(_double)(torch.ones(8))
    torch._dynamo.reset()


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2
