"""The stand-in says in one line what is missing, and never imports what it looks for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from fuzzer.simnpu import SimulatorError
from fuzzer.simnpu.environment import check
from fuzzer.simnpu.runtime.build import find_compiler
from tests.simnpu.conftest import RunPython

CHECK = """
import sys
from fuzzer.simnpu.environment import check, require
from fuzzer.simnpu import SimulatorError
assert not {"torch", "torch_npu", "triton", "llvmlite"} & set(sys.modules)
try:
    require()
except SimulatorError as error:
    print(error)
"""


def _fake_distribution(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.sim
def test_an_installed_stack_meets_every_requirement() -> None:
    assert [requirement for requirement in check() if not requirement.ok] == []


def test_a_met_requirement_has_no_remedy_and_a_missing_one_has() -> None:
    for requirement in check():
        assert bool(requirement.remedy) != requirement.ok


def test_importing_simnpu_imports_no_torch(run_python: RunPython) -> None:
    code = "import sys, fuzzer.simnpu; print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert run_python("-c", code).stdout == "False False\n"


@pytest.mark.sim
def test_a_wrong_torch_npu_is_named_with_the_version_needed(run_python: RunPython, tmp_path: Path) -> None:
    _fake_distribution(tmp_path, "torch_npu", "2.1.0")
    line = run_python("-c", CHECK, env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"}).stdout
    assert line.startswith("torch_npu: found 2.1.0, need 2.13.0; pip install")
    assert line.count("\n") == 1


def test_a_torch_built_for_gpu_is_refused_and_says_why(run_python: RunPython, tmp_path: Path) -> None:
    _fake_distribution(tmp_path, "torch", "2.13.0+cu130")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise AssertionError('imported')\n")
    (tmp_path / "torch" / "version.py").write_text("cuda: str | None = '13.0'\nhip = None\n")
    line = run_python("-c", CHECK, env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"}).stdout
    assert line.startswith("torch: found 2.13.0+cu130 (built for GPU, 13.0), need 2.13.0, CPU build; torch_npu refuses")
    assert line.count("\n") == 1


def test_a_missing_compiler_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(SimulatorError, match=r"no C compiler found .*install gcc"):
        find_compiler()
    (missing,) = [requirement for requirement in check() if requirement.name == "C compiler"]
    assert (missing.found, missing.ok) == ("missing", False)
    assert missing.remedy.startswith("install gcc")


def test_a_compiler_named_by_cc_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(SimulatorError, match=r"no-such-compiler"):
        find_compiler()


def test_installing_after_torch_npu_was_imported_is_refused(run_python: RunPython) -> None:
    code = "import sys; sys.modules['torch_npu'] = sys; import fuzzer.simnpu; fuzzer.simnpu.install()"
    done = run_python("-c", code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "torch_npu is already imported; call fuzzer.simnpu.install() before anything imports it"
    )


@pytest.mark.sim
def test_a_second_install_does_nothing_and_other_options_are_refused(npu: Any) -> None:
    from fuzzer.simnpu import SimOptions, install, installed_options

    install()
    assert installed_options() == SimOptions()
    with pytest.raises(SimulatorError, match="already installed"):
        install(SimOptions(devices=2))


@pytest.mark.parametrize(
    ("field", "value"), [("soc", "A100"), ("devices", 0), ("devices", 17), ("poison", 256), ("tile_config", -1)]
)
def test_an_impossible_machine_cannot_be_described(field: str, value: object) -> None:
    from fuzzer.simnpu import SimOptions

    with pytest.raises(ValueError, match=field):
        SimOptions(**{field: value})  # type: ignore[arg-type]  # wrong on purpose
