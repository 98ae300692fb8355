"""Whole programs through target and oracles: upstream's own defects are found, what is no defect is not called one."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
BUGS = sorted((HERE / "upstream").glob("bug_*.py"))
CONTROLS = sorted((HERE / "upstream").glob("control_*.py"))
NOT_BUGS = sorted((HERE / "not_bugs").glob("*.py"))
HONEST = sorted((HERE / "honest").glob("*.py"))

KINDS = {
    "bug_185382_item_in_adam_loop": "wrong-result",
    "bug_193661_permute_mean_argmax": "wrong-result",
    "bug_195422_inplace_through_dropout": "mutation",
    "bug_198270_index_put_add_flip": "mutation",
    "bug_unreported_index_add_of_view": "mutation",
}


@cache
def answers(target: str) -> Any:
    """All programs in one process, once per target."""
    files = [*BUGS, *CONTROLS, *NOT_BUGS, *HONEST]
    command = [sys.executable, "-W", "ignore", "-m", "tests.targets.judge_files", target, *map(str, files)]
    root = HERE.parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def verdict(target: str, file: Path) -> Any:
    return answers(target)["verdicts"][file.stem]


TARGETS = pytest.mark.parametrize("target", ["cpu", pytest.param("sim", marks=pytest.mark.sim)])
SLOW = pytest.mark.slow


@SLOW
@pytest.mark.parametrize("file", BUGS, ids=lambda file: file.stem)
def test_a_silent_defect_of_upstream_inductor_on_the_cpu_is_a_bug(file: Path) -> None:
    found = verdict("cpu", file)
    assert found["outcome"] == "BUG", found["evidence"]
    assert found["kind"] == KINDS[file.stem]
    assert found["stage"] == "judge"


@SLOW
@TARGETS
@pytest.mark.parametrize("file", CONTROLS, ids=lambda file: file.stem)
def test_a_mended_defect_passes(target: str, file: Path) -> None:
    assert verdict(target, file)["outcome"] == "PASS", verdict(target, file)["evidence"]


@SLOW
@TARGETS
@pytest.mark.parametrize("file", NOT_BUGS, ids=lambda file: file.stem)
def test_what_maintainers_call_no_bug_is_none(target: str, file: Path) -> None:
    assert verdict(target, file)["outcome"] in ("PASS", "EXCUSED", "INCONCLUSIVE"), verdict(target, file)["evidence"]


@SLOW
@TARGETS
def test_gradients_of_a_training_step_are_compared_and_right(target: str) -> None:
    found = answers(target)["verdicts"]["training_layer_norm"]
    assert found["outcome"] == "PASS", found["evidence"]
    assert found["gradients"] == ["gradient[x]", "gradient[weight]", "gradient[scale]"]


@SLOW
@TARGETS
def test_an_exact_program_is_noticed_and_right_to_the_bit(target: str) -> None:
    found = answers(target)["verdicts"]["exact_integers_in_floats"]
    assert found["exact"]
    assert found["outcome"] == "PASS", found["evidence"]


@SLOW
@TARGETS
def test_a_program_that_nobody_can_run_is_invalid(target: str) -> None:
    assert answers(target)["verdicts"]["invalid_reshape"]["outcome"] == "INVALID"


@SLOW
@TARGETS
def test_every_step_leaves_a_breadcrumb_before_it_begins(target: str) -> None:
    crumbs = answers(target)["verdicts"]["training_layer_norm"]["crumbs"]
    expected = ("eager: eager: forward", "reference: reference: backward", f"inductor: compiled on {target}: forward")
    assert [crumb for crumb in crumbs if crumb in expected] == list(expected)


@SLOW
@TARGETS
def test_seconds_are_told_by_stage(target: str) -> None:
    seconds = answers(target)["verdicts"]["training_layer_norm"]["seconds"]
    assert {"eager", "reference", "inductor"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())


@SLOW
def test_target_cpu_needs_nothing_of_the_npu() -> None:
    assert not answers("cpu")["torch_npu"]


@SLOW
@pytest.mark.sim
def test_target_sim_tells_kernels_and_the_seconds_of_each_compiler() -> None:
    found = answers("sim")["verdicts"]["exact_integers_in_floats"]
    assert found["kernels"]
    assert {"frontend", "adapter", "execute"} <= set(found["seconds"])
