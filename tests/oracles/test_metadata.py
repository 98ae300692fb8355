"""Number of values, dtype, shape, strides, aliasing and requires_grad."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fuzzer.observation import Observation
from fuzzer.oracles import judge
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict
from tests.oracles.observing import run, seen

PLAIN = torch.arange(12.0).reshape(3, 4)


def verdict_on(compiled: Observation, eager: torch.Tensor = PLAIN) -> Verdict:
    return judge(seen(run("reference", eager.double()), run("eager", eager), compiled))


def bug(origin: str) -> Signature:
    return Signature(kind=Kind.METADATA, stage=Stage.JUDGE, origin=origin)


def test_a_missing_output_is_a_bug() -> None:
    assert verdict_on(run("compiled")).signature == bug("structure")


def test_another_dtype_is_a_bug() -> None:
    assert verdict_on(run("compiled", PLAIN.to(torch.float16))).signature == bug("dtype")


def test_another_shape_is_a_bug() -> None:
    assert verdict_on(run("compiled", PLAIN.reshape(4, 3))).signature == bug("shape")


def test_another_shape_is_excused_if_some_eager_run_has_it() -> None:
    other = run("eager, moved", PLAIN[:2])
    observations = seen(run("reference", PLAIN.double()), run("eager", PLAIN), run("compiled", PLAIN[:2]), other)
    assert judge(observations).outcome is Outcome.EXCUSED


def test_other_strides_of_a_dense_output_are_a_bug() -> None:
    transposed = PLAIN.t().contiguous().t()
    verdict = verdict_on(run("compiled", transposed))
    assert verdict.signature == bug("stride")
    assert verdict.evidence == ("output[0]: strides are (1, 3), in eager (4, 1)",)


def test_strides_that_some_eager_run_has_pass() -> None:
    transposed = PLAIN.t().contiguous().t()
    on_device = run("eager on npu", transposed)
    observations = seen(run("reference", PLAIN.double()), run("eager", PLAIN), run("compiled", transposed), on_device)
    assert judge(observations).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("eager", "compiled"),
    [
        (torch.ones(3, 1), torch.ones(1, 3).t().as_strided((3, 1), (1, 7))),
        (torch.ones(3, 1).expand(3, 4), torch.ones(3, 4)),
        (torch.ones(6, 8)[:, ::2], torch.ones(6, 4)),
    ],
    ids=["size-1", "expanded", "with-gaps"],
)
def test_strides_that_eager_does_not_promise_are_free(eager: torch.Tensor, compiled: torch.Tensor) -> None:
    assert verdict_on(run("compiled", compiled), eager).outcome is Outcome.PASS


def test_an_output_that_no_longer_shares_memory_with_an_input_is_a_bug() -> None:
    eager = run("eager", PLAIN, inputs=[PLAIN])
    aliased = replace(eager, outputs=(replace(eager.outputs[0], alias="input[x0]"),))
    verdict = judge(seen(run("reference"), aliased, replace(eager, target="compiled")))
    assert verdict.signature == bug("alias")


def test_requires_grad_is_compared() -> None:
    assert verdict_on(run("compiled", PLAIN.clone().requires_grad_())).signature == bug("requires_grad")


def test_a_tensor_in_place_of_a_number_is_a_bug() -> None:
    eager = run("eager", torch.tensor(3))
    number = replace(eager, outputs=(replace(eager.outputs[0], is_number=True),))
    verdict = judge(seen(run("reference"), number, replace(eager, target="compiled")))
    assert verdict.signature == bug("number")


def test_wrong_values_are_told_before_wrong_strides() -> None:
    verdict = verdict_on(run("compiled", (PLAIN * 2).t().contiguous().t()))
    assert verdict.signature is not None
    assert verdict.signature.kind is Kind.WRONG_RESULT
