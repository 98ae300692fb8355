"""Where a program runs. Importing this package imports no torch; `Platform.prepare` does.

run = platform("cpu").prepare()                      # once per process: imports the stack, several seconds
observations = run(case, breadcrumb, settled)        # in a forked child, once per program
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuzzer.program import FuzzerError
from fuzzer.targets.stack import set_environment

if TYPE_CHECKING:
    from fuzzer.targets.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One place where programs are compiled and run, beside the CPU that says what is right."""

    name: str
    description: str

    def prepare(self, backend: str = "triton_experimental") -> Run:
        """Imports the stack and returns the function that runs cases; call it once per process, before torch is used.

        `backend` names torch_npu's Inductor backend. Raises FuzzerError with one line when the stack is not usable.
        """
        set_environment()
        run: Run = importlib.import_module(f"fuzzer.targets.{self.name}").prepare(backend)
        return run


PLATFORMS = (
    Platform(name="sim", description="torch_npu's compiled kernels on the host stand-in for an NPU"),
    Platform(name="npu", description="torch_npu on a real Ascend NPU"),
    Platform(name="cpu", description="upstream Inductor's C++ backend"),
    Platform(name="cuda", description="upstream Inductor's Triton backend on a CUDA device"),
)


def platform(name: str) -> Platform:
    """The platform of this name. Raises FuzzerError that lists those there are."""
    for known in PLATFORMS:
        if known.name == name:
            return known
    raise FuzzerError(f"no target is called {name!r}: use one of {', '.join(known.name for known in PLATFORMS)}")
