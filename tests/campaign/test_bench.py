"""A trial reaches, triggers and detects a defect that was brought back; a second run of the bench reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzzer import corpus
from fuzzer.campaign.bench import BenchPlan, run_bench
from fuzzer.campaign.programs import Files
from fuzzer.minimize import Budget
from fuzzer.program import FuzzerError
from fuzzer.recall import Trial

GUARD = Path(__file__).parents[2] / "corpus" / "downcast-inout.py"


def plan(folder: Path, seconds: float = 60.0) -> BenchPlan:
    return BenchPlan(
        fixes=("downcast_inout",),
        folder=folder,
        seconds=seconds,
        seeds=(0,),
        programs=Files(name="two programs", cases=(corpus.load_case(GUARD),) * 2),
        workers=2,
        budget=Budget(evaluations=4, seconds=30.0),
    )


@pytest.mark.sim
@pytest.mark.slow
def test_a_trial_is_measured_once_and_read_again(tmp_path: Path) -> None:
    heard: list[tuple[Trial, bool]] = []
    (trial,) = run_bench(plan(tmp_path), lambda one, new: heard.append((one, new)))
    assert trial.reached is not None
    assert trial.triggered is not None
    assert trial.detected is not None
    assert 0 < trial.reached <= trial.triggered <= trial.detected < 60
    assert trial.statements == 2
    assert run_bench(plan(tmp_path), lambda one, new: heard.append((one, new))) == [trial]
    assert heard == [(trial, True), (trial, False)]
    assert json.loads((tmp_path / "trials" / "downcast_inout-0.json").read_text())["slug"] == "downcast_inout"
    with pytest.raises(FuzzerError, match=r"holds trials with seconds = 60\.0, not 5\.0: use another --out"):
        run_bench(plan(tmp_path, seconds=5.0), lambda one, new: None)
