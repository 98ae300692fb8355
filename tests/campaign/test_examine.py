"""A failing program becomes a small entry that catches the defect which was brought back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzer import corpus
from fuzzer.campaign.examine import Examiner, Suspect, Unsteady
from fuzzer.campaign.protocol import RunCase, Settings
from fuzzer.campaign.replay import replay
from fuzzer.campaign.worker import Pool
from fuzzer.corpus import Expect, Standing
from fuzzer.minimize import Budget
from fuzzer.program import Case
from fuzzer.verdict import Kind, Outcome, Signature, Stage
from tests.campaign.programs import PARSED

LARGE = """\
import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.randint(-4, 5, (6, 4), generator=seeded(1))
    x1 = torch.randn((6, 4), generator=seeded(2))
    x2 = torch.randint(-4, 5, (6, 4), generator=seeded(3))
    return x0, x1, x2


def program(x0, x1, x2):
    v0 = x1.relu()
    v1 = v0 + x1
    v2 = x0.add_(x2)
    v3 = v2.abs()
    v4 = v1.sum(0)
    return v3, v4
"""
"""An int64 input that is changed in place: `downcast_inout` loses what was in it."""


@pytest.fixture(scope="module")
def simulated() -> Iterator[Pool]:
    with Pool(Settings(target="sim", reintroduce=("downcast_inout",)), workers=2) as pool:
        yield pool


@pytest.mark.sim
@pytest.mark.slow
def test_a_defect_that_was_brought_back_is_shrunk_filed_and_caught_again(simulated: Pool, tmp_path: Path) -> None:
    case = Case(source=LARGE)
    (reply,) = simulated.run([RunCase(case=case)])
    assert reply.verdict.signature is not None, reply.verdict
    examiner = Examiner(simulated)
    suspect = examiner.attribute(3, case, reply.verdict.signature)
    assert isinstance(suspect, Suspect)
    assert not suspect.live

    examined = examiner.file(examiner.shrink(suspect, budget=Budget(evaluations=60)), tmp_path)
    assert examined.statements <= 2
    assert examined.catches == ("downcast_inout",)
    assert examined.path is not None
    entry = corpus.load(examined.path)
    assert (entry.expect, entry.catches, entry.id) == (Expect.PASS, ("downcast_inout",), examined.bucket)

    (again,) = replay([(examined.path, entry)], simulated, reintroduced=("downcast_inout",))
    assert again.standing is Standing.CAUGHT


@pytest.mark.sim
@pytest.mark.slow
def test_a_program_that_does_not_fail_twice_is_unsteady(simulated: Pool) -> None:
    once = Signature(kind=Kind.CRASH, stage=Stage.EXECUTE, origin="SIGSEGV")
    unsteady = Examiner(simulated).attribute(3, Case(source=PARSED), once)
    assert unsteady == Unsteady(number=3, evidence="first crash at execute (SIGSEGV); in a new process PASS")
    (reply,) = simulated.run([RunCase(case=Case(source=PARSED), keep_kernels=True)])
    assert reply.verdict.outcome is Outcome.PASS
    assert any("tl.load" in source for _, source in reply.kernels)
