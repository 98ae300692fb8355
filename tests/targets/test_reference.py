"""The float64 run, and which programs are exact."""

from __future__ import annotations

import pytest
import torch

from fuzzer.observation import Observation
from fuzzer.program import Case
from fuzzer.targets.harness import load
from fuzzer.targets.reference import run_reference

HEAD = """
import torch
import torch.nn.functional as F

def inputs():
    return {inputs}

def program(x, y):
    {body}
"""

INTEGERS = "torch.arange(-8.0, 8.0).reshape(4, 4), torch.tensor([0, 2, 2, 1])"
FRACTIONS = "torch.linspace(-1, 1, 16).reshape(4, 4), torch.tensor([0, 2, 2, 1])"


def reference(body: str, inputs: str = FRACTIONS, *, training: bool = False) -> tuple[Observation, bool]:
    source = HEAD.format(inputs=inputs, body=body)
    return run_reference(load(Case(source=source)), training, lambda stage, step: None)


@pytest.mark.parametrize(
    "body",
    [
        "return x.to(torch.float16) / 3",
        "return x.sum(0, dtype=torch.float32)",
        "return torch.zeros(3, dtype=torch.bfloat16), torch.ones(3), torch.full((2,), 0.5)",
        "return y / 3, y * 0.1, y.float(), y.sqrt()",
        "return torch.tensor([0.1, 0.2]), torch.tensor(0.5, dtype=torch.float32), torch.arange(0, 1, 0.1)",
        "return torch.empty_like(x, dtype=torch.float16).fill_(1), x.new_zeros(2, dtype=torch.float16)",
        "return x.softmax(1, dtype=torch.float32), F.layer_norm(x.half(), (4,)), x.half().mean(), F.one_hot(y).float()",
        "return torch.where(y > 1, 0.1, 0.3), x.half().type(torch.float32), x.half().var(0)",
    ],
)
def test_every_floating_result_is_float64(body: str) -> None:
    seen, _ = reference(body)
    assert seen.failure is None
    assert {leaf.value.dtype for leaf in seen.outputs} == {torch.float64}


def test_a_cast_to_low_precision_does_not_round() -> None:
    seen, _ = reference("return x.to(torch.bfloat16).to(torch.float32)")
    assert torch.equal(seen.outputs[0].value, torch.linspace(-1, 1, 16).reshape(4, 4).double())


def test_integers_and_bools_keep_their_type() -> None:
    seen, _ = reference("return y + 1, x > 0, y.to(torch.int32)")
    assert [leaf.value.dtype for leaf in seen.outputs] == [torch.int64, torch.bool, torch.int32]


def test_the_default_dtype_is_restored() -> None:
    reference("raise ValueError('no')")
    assert torch.get_default_dtype() is torch.float32


def test_bits_seen_as_another_type_have_no_reference() -> None:
    seen, exact = reference("return x.view(torch.int32)")
    assert seen.failure is not None
    assert not exact


@pytest.mark.parametrize(
    "body",
    [
        "return x.sum(), x[y].masked_fill(x > 2, 0).t().contiguous().cumsum(1)",
        "return x @ x, x.amax(0), x.argmax(1), (x * x - 3).relu()",
        "x.add_(1)\n    return torch.cat([x, x]), F.pad(x, (1, 1)), x.to(torch.float16)",
        "return torch.zeros(4).index_add(0, y, x[0]), x ** 2, torch.where(x > 0, x, -x)",
        "return y.float().sum(), y * 2, (y > 0).any(), x.sort(1)[0], x.round()",
    ],
)
def test_small_integers_make_a_program_exact(body: str) -> None:
    seen, exact = reference(body, INTEGERS)
    assert seen.failure is None
    assert exact


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("return x", FRACTIONS),
        ("return x * 0.5", INTEGERS),
        ("return x / 1", INTEGERS),
        ("return y / 1", INTEGERS),
        ("return x.mean()", INTEGERS),
        ("return x.exp().round()", INTEGERS),
        ("return (x * 1000 * 1000 * 10).sum()", INTEGERS),
        ("return x.to(torch.bfloat16) * 100", INTEGERS),
        ("return x.masked_fill(x > 0, float('-inf'))", INTEGERS),
        ("return x ** 3", INTEGERS),
    ],
)
def test_whatever_may_round_makes_a_program_inexact(body: str, inputs: str) -> None:
    seen, exact = reference(body, inputs)
    assert seen.failure is None
    assert not exact


def test_a_sum_that_cancels_is_not_exact_if_its_terms_are_too_large() -> None:
    big = "torch.tensor([2.0**23, -(2.0**23), 2.0**23, -(2.0**23)]), 0"
    assert not reference("return x.sum()", big)[1]
    assert reference("return x + 1", big)[1]


def test_a_backward_pass_that_rounds_makes_a_program_inexact() -> None:
    assert reference("return x * x", INTEGERS, training=True)[1]
    assert not reference("return x.amax()", "torch.ones(4), 0", training=True)[1]
