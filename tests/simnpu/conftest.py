"""The simulated machine, installed once for the whole test process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Before any test module imports torch, which would load torch_npu, which would not find a device.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

ROOT = Path(__file__).parents[2]

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def npu() -> Any:
    """The module `torch.npu`, on the stand-in with default options, in this process."""
    from fuzzer.simnpu import install

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        install()
    return importlib.import_module("torch_npu").npu


@pytest.fixture(scope="session")
def run_python() -> RunPython:
    """Runs a new interpreter that can import the project: `run_python("-c", "...", env={"CC": "x"})`."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("TORCH", "PYTORCH"))}
        path = os.pathsep.join(filter(None, [str(ROOT), inherited.get("PYTHONPATH", "")]))
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            pass_fds=pass_fds,
            env={**inherited, "PYTHONPATH": path, **(env or {})},
        )

    return run
