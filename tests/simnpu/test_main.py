"""`python -m fuzzer.simnpu` runs a torch_npu script that knows nothing of the simulator."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.simnpu.conftest import RunPython

SCRIPT = """
import sys
import torch
import torch_npu

x = torch.arange(6.0, device="npu").reshape(2, 3)
compiled = torch.compile(lambda t: (t * 2).sum(1))
print(__name__, sys.argv[1:], torch.npu.get_device_name(), compiled(x).tolist())
sys.exit(3)
"""

DEFAULT_BACKEND = """
import torch
import torch_npu
from fuzzer.simnpu.record import recording

x = torch.randn(64, 37)
with recording() as seen:
    y = torch.compile(lambda t: t.sum(-1))(x.npu())
right = torch.allclose(y.cpu(), x.sum(-1), atol=1e-4)
tiled = all("X0BLOCK_SUB" in kernel.source for kernel in seen.kernels)
print(f"{len(seen.kernels)} kernel(s), tiled: {tiled}, right: {right}")
"""

STRAY = """
import ctypes
import torch

x = torch.ones(3, 5, dtype=torch.float16, device="npu")
ctypes.string_at(x.data_ptr() + 32, 1)
"""


@pytest.mark.sim
@pytest.mark.slow
def test_a_script_runs_compiled_with_its_arguments_and_its_exit_status(run_python: RunPython, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    arguments = ("--soc", "Ascend910B4", str(script), "--epochs", "2")
    done = run_python("-m", "fuzzer.simnpu", *arguments, env={"CI": "true"})  # torch is stricter where CI is set
    assert done.stdout == "__main__ ['--epochs', '2'] Ascend910B4 [6.0, 24.0]\n", done.stderr
    assert done.returncode == 3


@pytest.mark.sim
@pytest.mark.slow
def test_the_default_backend_generates_its_own_index_code(run_python: RunPython, tmp_path: Path) -> None:
    """Its own check of a kernel must not fail here: another code generator would take over in silence."""
    script = tmp_path / "default.py"
    script.write_text(DEFAULT_BACKEND)
    done = run_python("-W", "ignore", "-m", "fuzzer.simnpu", "--backend", "default", str(script))
    assert done.stdout == "1 kernel(s), tiled: True, right: True\n", done.stderr


@pytest.mark.sim
@pytest.mark.slow
def test_a_stray_access_to_a_tensor_names_the_size_of_the_tensor(run_python: RunPython, tmp_path: Path) -> None:
    script = tmp_path / "stray.py"
    script.write_text(STRAY)
    reader, writer = os.pipe()
    done = run_python("-m", "fuzzer.simnpu", str(script), env={"SIMNPU_FAULT_FD": str(writer)}, pass_fds=(writer,))
    os.close(writer)
    with os.fdopen(reader) as stream:
        record = json.loads(stream.read())
    assert done.returncode == -signal.SIGSEGV
    assert (record["size"], record["distance"], record["state"]) == (30, 3, "live")


@pytest.mark.sim
@pytest.mark.slow
def test_a_module_runs_with_dash_m(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import sys, torch\nprint(sys.argv[1:], torch.ones(2).npu().sum().item())\n")
    done = run_python("-m", "fuzzer.simnpu", "--devices", "2", "-m", "job", "a", env={"PYTHONPATH": f"{tmp_path}:."})
    assert done.stdout == "['a'] 2.0\n", done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: target"),
        (["--soc", "A100", "x.py"], "argument --soc: invalid choice: 'A100'"),
        (["--devices", "99", __file__], "devices must be 1 to 16, not 99"),
        (["--poison", "x", __file__], "argument --poison: invalid"),
        (["nowhere.py"], "no such script: nowhere.py"),
    ],
)
def test_bad_usage_is_one_line_and_exit_status_2(run_python: RunPython, arguments: list[str], message: str) -> None:
    done = run_python("-m", "fuzzer.simnpu", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"simnpu: {message}")
    assert done.stderr.count("\n") == 1


def test_a_machine_without_a_compiler_is_told_so_in_one_line(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python("-m", "fuzzer.simnpu", __file__, env={"CC": "no-such-compiler"})
    assert done.returncode == 2
    assert done.stderr.startswith("simnpu: C compiler: found missing, need cc, gcc or clang; install gcc")
    assert done.stderr.count("\n") == 1
