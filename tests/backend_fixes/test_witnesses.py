"""Each backend fix has a witness: a program that is right on the released wheel, and is not once the defect is back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from typing_extensions import Self

from backend_fixes import FIXES
from fuzzer.fixes import BackendFix, State, state
from fuzzer.verdict import Kind

HERE = Path(__file__).parent
ANSWERS = {
    Kind.WRONG_RESULT: {"wrong"},
    Kind.GRADIENT: {"wrong"},
    Kind.MUTATION: {"wrong"},
    Kind.MEMORY: {"died", "wrong"},
    Kind.CRASH: {"died"},
    Kind.CODEGEN_ERROR: {"raised"},
    Kind.COMPILE_ERROR: {"raised"},
}
"""What a witness of each kind of defect shows; memory beyond an allocation is guarded, within it is not."""


class Simulator:
    """A process that has torch imported and forks a child per witness."""

    def __init__(self, cache: Path) -> None:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "TORCHINDUCTOR_CACHE_DIR": str(cache),
        }
        self._process = subprocess.Popen(
            [sys.executable, HERE / "run_witnesses.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def run(self, file: Path, slugs: Sequence[str]) -> tuple[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(file), list(slugs)]) + "\n")
        self._process.stdin.flush()
        answer, detail = json.loads(self._process.stdout.readline())
        return answer, detail

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._process.wait()


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    with Simulator(tmp_path_factory.mktemp("inductor")) as running:
        yield running


def witness(fix: BackendFix) -> Path:
    return HERE / "witness" / f"{fix.slug}.py"


every_fix: Callable[..., pytest.MarkDecorator] = pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.slug)


@pytest.mark.sim
@every_fix
def test_the_released_wheel_has_the_fix(fix: BackendFix) -> None:
    assert state(fix) is State.PRESENT


@pytest.mark.sim
@pytest.mark.slow
@every_fix
def test_the_witness_is_right_without_the_defect_and_fails_with_it(fix: BackendFix, simulator: Simulator) -> None:
    answer, detail = simulator.run(witness(fix), [])
    assert answer == "right", detail
    answer, detail = simulator.run(witness(fix), [fix.slug])
    assert answer in ANSWERS[fix.kind], f"{answer}: {detail}"


def test_every_witness_belongs_to_a_fix_and_every_fix_has_one() -> None:
    assert {path.stem for path in (HERE / "witness").glob("*.py")} == {fix.slug for fix in FIXES}


def test_slugs_are_the_names_of_the_modules() -> None:
    folder = HERE.parents[1] / "backend_fixes"
    assert {path.stem for path in folder.glob("[a-z]*.py")} == {fix.slug for fix in FIXES}
