"""The command line takes a backend fix from a module outside the repository, and says in a line what does not fit."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from fuzzer.cli import main

HERE = Path(__file__).parent
COUNTED = "ndim += count if count else 1"
UNCOUNTED = "ndim += count"


def module(folder: Path, fixed: str, defective: str) -> str:
    """A module of a user's own, and its path."""
    path = folder / "mine.py"
    path.write_text(
        "from fuzzer.fixes import BackendFix, Edit\n"
        "from fuzzer.verdict import Kind\n"
        "FIX = BackendFix(slug='mine', title='', reference='', kind=Kind.COMPILE_ERROR, symptom='', summary='',\n"
        "                 trigger='', edits=(Edit(module='torch_npu._inductor.triton_experimental.codegen.triton',\n"
        f"                 function='NPUTritonKernel.triton_tensor_ndim', fixed={fixed!r},\n"
        f"                 defective={defective!r}),))\n"
    )
    return str(path)


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "fixed", "defective"), [("--reintroduce", COUNTED, UNCOUNTED), ("--fix", UNCOUNTED, COUNTED)]
)
def test_what_a_module_of_the_users_own_edits_takes_effect(
    option: str, fixed: str, defective: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one calls the wheel's form defective, so that mending it brings the known defect back."""
    witness = str(HERE / "witness" / "keepdim_rank.py")
    assert main(["check", witness, option, module(tmp_path, fixed, defective)]) == 1
    assert "broadcast_impl_shape" in capsys.readouterr().out


@pytest.mark.sim
@pytest.mark.parametrize("option", ["--reintroduce", "--fix"])
def test_an_edit_that_does_not_match_is_one_line_that_names_version_and_function(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    witness = str(HERE / "witness" / "keepdim_rank.py")
    assert main(["check", witness, option, module(tmp_path, "ndim += 2", "ndim += 3")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert f"torch_npu {importlib.metadata.version('torch_npu')}" in line
    assert "NPUTritonKernel.triton_tensor_ndim" in line
