"""Target `cuda`: upstream Inductor's Triton backend on a CUDA device, as a second opinion."""

from __future__ import annotations

import subprocess
import sys

import torch

from fuzzer.program import FuzzerError
from fuzzer.targets.run import Run, Runner
from fuzzer.targets.stack import configure_torch


def prepare(backend: str = "") -> Run:
    """Imports torch; CUDA itself starts in the forked children. `backend` is of no use here."""
    if torch.version.cuda is None or not _sees_a_device():
        raise FuzzerError("target cuda needs a CUDA build of torch and a CUDA device; use --target sim or cpu")
    configure_torch()
    return Runner(name="cuda", device="cuda")


def _sees_a_device() -> bool:
    """Asked in a process of its own: counting devices starts a thread of the driver, and then nothing may fork."""
    probe = "import torch; raise SystemExit(torch.cuda.device_count() == 0)"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode == 0
