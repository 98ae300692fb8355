"""A memory fault on the simulator comes with its kernels, and with what Triton's interpreter says of their source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzzer.campaign.protocol import Reply, RunCase, Settings
from fuzzer.campaign.worker import Pool
from fuzzer.program import Case
from fuzzer.verdict import Kind, Outcome, Signature, Stage

pytestmark = [pytest.mark.sim, pytest.mark.slow]

OUT_OF_BOUNDS = Signature(kind=Kind.MEMORY, stage=Stage.EXECUTE, origin="out-of-bounds")

MASKED_GATHER = """\
import torch


def inputs():
    return torch.ones(8, 8), torch.ones(8, 4)


def program(x, y):
    return torch.slice_scatter(x, y, 1, 4, 8) * 2
"""
"""triton-adapter-opt makes an unmasked load of a masked one, of which a lane reads past the end of `y`."""

STRIDED = """\
import torch


def inputs():
    return (torch.ones(2, 4),)


def program(x):
    return x.permute(1, 0).sum(0)
"""
"""The Triton source itself reads past the end of `x`."""

OVERWRITE = """\
import ctypes

import torch

kept = []


@torch._dynamo.disable
def overwrite(x):
    kept.append(x)
    ctypes.memset(x.data_ptr() + 30, 1, 1)


def inputs():
    return (torch.arange(30, dtype=torch.uint8),)


def program(x):
    y = x + 1
    if torch.compiler.is_compiling():
        overwrite(y)
    return y * 2
"""


@pytest.fixture(scope="module")
def simulated() -> Iterator[Pool]:
    with Pool(Settings(target="sim"), workers=1) as pool:
        yield pool


def run(pool: Pool, source: str, *, looked_at: bool = True) -> Reply:
    (reply,) = pool.run([RunCase(case=Case(source=source), keep_kernels=looked_at)])
    return reply


def opinions(reply: Reply) -> list[str]:
    return [line for line in reply.verdict.evidence if line.startswith("interpreter: ")]


def test_an_access_that_only_the_compilers_made_is_told_apart(simulated: Pool) -> None:
    reply = run(simulated, MASKED_GATHER)
    assert reply.verdict.signature == OUT_OF_BOUNDS
    assert opinions(reply) == [
        "interpreter: every access of the Triton source is in bounds: the compilers made this one"
    ]


def test_an_access_of_the_triton_source_is_named_by_argument_index_and_line(simulated: Pool) -> None:
    reply = run(simulated, STRIDED)
    assert reply.verdict.signature == OUT_OF_BOUNDS
    (opinion,) = opinions(reply)
    assert "reads in_ptr0[8], which has 8 elements, in program " in opinion
    assert opinion.partition(" at line ")[2].partition(": ")[2].startswith("_es_sfull")


def test_a_child_that_died_leaves_the_source_of_its_kernels(simulated: Pool) -> None:
    reply = run(simulated, MASKED_GATHER, looked_at=False)
    assert reply.verdict.signature == OUT_OF_BOUNDS
    assert not opinions(reply)
    ((name, source),) = reply.kernels
    assert f"def {name}(" in source
    assert "tl.load" in source


def test_a_byte_past_the_end_of_a_tensor_that_somebody_keeps_is_a_bug_of_the_kernel_that_ran(simulated: Pool) -> None:
    reply = run(simulated, OVERWRITE, looked_at=False)
    assert reply.verdict.signature == OUT_OF_BOUNDS
    assert reply.verdict.evidence == (
        f"overwrite in kernel {reply.kernels[-1][0]}: 1 byte(s) past the end of a live device allocation of 30 bytes",
        "besides: PASS",
    )


def test_a_program_without_a_memory_fault_is_run_once(simulated: Pool) -> None:
    reply = run(simulated, OVERWRITE.replace("+ 30", "+ 29"))
    assert reply.verdict.outcome is Outcome.BUG
    assert reply.verdict.signature != OUT_OF_BOUNDS
    assert not opinions(reply)
