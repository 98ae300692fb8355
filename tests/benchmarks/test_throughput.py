"""The stages of a throughput measurement add up to the lives of the children; what has no row is an error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.throughput import DIED, REST, Measured, children_cpu
from fuzzer.campaign.protocol import Reply
from fuzzer.verdict import Outcome, Verdict


def measured(*replies: Reply) -> Measured:
    return Measured(replies=replies, start=1.0, seconds=2.0, cpu=1.5, workers=1)


def reply(seconds: float, **stages: float) -> Reply:
    return Reply(verdict=Verdict(outcome=Outcome.PASS, seconds=tuple(stages.items())), seconds=seconds)


def test_the_rows_add_up_to_the_lives_of_the_children() -> None:
    stages = measured(reply(2.0, generate=0.25, lowering=0.5, jit=0.25), reply(1.0, generate=0.5), reply(4.0)).stages
    assert stages["generate"] == 0.75
    assert stages["lower to host code"] == 0.75
    assert stages[REST] == 1.5
    assert stages[DIED] == 4.0
    assert sum(stages.values()) == 7.0


def test_a_row_that_nobody_told_is_left_out() -> None:
    assert set(measured(reply(2.0, generate=0.25, jit=0.0)).stages) == {"generate", "lower to host code", REST, DIED}


def test_a_stage_without_a_row_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no row for parsing"):
        _ = measured(reply(1.0, parsing=0.5)).stages


def test_the_cpu_time_of_a_process_counts_what_its_ended_children_used() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 0.25 <= children_cpu([process.pid]) < 3.0
        assert children_cpu([process.pid, process.pid]) == 2 * children_cpu([process.pid])
        process.communicate(b"\n")
