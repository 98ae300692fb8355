"""Planted faults are found among a million honest elements; honest differences are not called faults."""

from __future__ import annotations

import pytest
import torch

from fuzzer.oracles import judge
from fuzzer.verdict import Kind, Outcome, Signature, Stage
from tests.oracles.observing import run, seen, three_outputs

WRONG = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE, origin="output")
NON_FINITE = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE, origin="non-finite")


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def rounded_otherwise(right: torch.Tensor, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    """A float64 result as another compiler would compute it: off by up to two units in the last place."""
    share = torch.rand(right.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1
    return (right * (1 + share * torch.finfo(dtype).eps)).to(dtype)


def test_honest_rounding_differences_in_a_million_elements_pass() -> None:
    right = normal(1000, 1000).double()
    assert judge(three_outputs(right, right.float(), rounded_otherwise(right))).outcome is Outcome.PASS


def test_one_element_among_a_million_off_by_a_thousandth_is_a_bug_and_is_named() -> None:
    right = normal(1000, 1000).double() + 10
    compiled = rounded_otherwise(right)
    compiled[123, 456] *= 1.001
    verdict = judge(three_outputs(right, right.float(), compiled))
    assert verdict.signature == WRONG
    assert verdict.oracle == "numerics"
    assert "1 of 1000000 elements" in verdict.evidence[0]
    assert verdict.evidence[1].startswith("output[0][123, 456]: compiled ")
    for word in ("eager", "float64", "allowed error"):
        assert word in verdict.evidence[1]


def test_a_moved_nan_is_a_bug() -> None:
    right = normal(64, 64).double()
    right[3, 4] = torch.nan
    compiled = right.float().clone()
    compiled[3, 4], compiled[3, 5] = compiled[3, 5].item(), torch.nan
    assert judge(three_outputs(right, right.float(), compiled)).signature == NON_FINITE


@pytest.mark.parametrize(
    ("there", "here"), [(torch.inf, -torch.inf), (torch.inf, 3e38), (1.0, torch.inf), (torch.nan, 0.0)]
)
def test_another_class_of_value_is_a_bug(there: float, here: float) -> None:
    right = torch.full((5,), there, dtype=torch.float64)
    assert judge(three_outputs(right, right.float(), torch.full((5,), here))).signature == NON_FINITE


def test_the_same_non_finite_values_pass() -> None:
    right = torch.tensor([torch.nan, torch.inf, -torch.inf, 1.0], dtype=torch.float64)
    assert judge(three_outputs(right, right.float(), right.float())).outcome is Outcome.PASS


def test_an_overflow_on_which_eager_and_float64_disagree_is_inconclusive() -> None:
    right = torch.tensor([70000.0, 1.0], dtype=torch.float64)
    eager = right.to(torch.float16)
    compiled = torch.tensor([torch.nan, 1.0], dtype=torch.float16)
    assert judge(three_outputs(right, eager, compiled)).outcome is Outcome.INCONCLUSIVE
    assert judge(three_outputs(right, eager, eager)).outcome is Outcome.PASS


def test_a_flipped_axis_is_a_bug() -> None:
    right = normal(32, 33).double()
    assert judge(three_outputs(right, right.float(), right.float().flip(1))).signature == WRONG


def test_a_sum_in_blocks_passes() -> None:
    terms = normal(2048, 96)
    right = terms.double().sum(0)
    in_blocks = terms.reshape(32, 64, 96).sum(1).sum(0)
    moved = (terms.double() + normal(2048, 96, seed=1).double() * 2.0**-21).sum(0).float()
    assert judge(three_outputs(right, terms.sum(0), in_blocks, moved)).outcome is Outcome.PASS


def test_a_sum_that_misses_one_row_is_a_bug() -> None:
    terms = normal(2048, 96)
    right = terms.double().sum(0)
    assert judge(three_outputs(right, terms.sum(0), terms[1:].sum(0))).signature == WRONG


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_right_with_and_without_rounding_in_between(dtype: torch.dtype) -> None:
    x = normal(64, 65, dtype=dtype)
    right = ((x.double() * 1.7) + x.double().square()).sigmoid()
    eager = ((x * 1.7) + x.square()).sigmoid()
    fused = ((x.float() * 1.7) + x.float().square()).sigmoid().to(dtype)
    assert judge(three_outputs(right, eager, fused)).outcome is Outcome.PASS
    assert judge(three_outputs(right, fused, eager)).outcome is Outcome.PASS


def test_an_element_of_low_precision_off_by_a_tenth_is_a_bug() -> None:
    right = normal(64, 65).double()
    eager = right.to(torch.bfloat16)
    compiled = eager.clone()
    compiled[right.argmax() // 65, right.argmax() % 65] *= 0.9
    assert judge(three_outputs(right, eager, compiled)).signature == WRONG


def test_an_integer_off_by_one_is_a_bug() -> None:
    right = torch.arange(1000)
    compiled = right.clone()
    compiled[17] += 1
    verdict = judge(three_outputs(right, right, compiled))
    assert verdict.signature == WRONG
    assert verdict.evidence[1].startswith("output[0][17]: compiled 18, eager 17")


def test_an_integer_is_excused_only_where_eager_runs_disagree() -> None:
    right = torch.arange(10)
    tie = right.clone()
    tie[3] = 5
    assert judge(three_outputs(right, right, tie, tie)).outcome is Outcome.EXCUSED
    elsewhere = tie.clone()
    elsewhere[4] = 0
    assert judge(three_outputs(right, right, elsewhere, tie)).signature == WRONG


def test_a_flipped_bool_is_a_bug() -> None:
    right = torch.tensor([True, False, True])
    assert judge(three_outputs(right, right, ~right)).signature == WRONG


def test_an_ill_conditioned_value_is_inconclusive_and_never_a_bug() -> None:
    right = torch.full((8,), 1e-9, dtype=torch.float64)
    eager, other, compiled = torch.full((8,), 2e-8), torch.full((8,), -3e-8), torch.full((8,), 1e-6)
    assert judge(three_outputs(right, eager, compiled, other)).outcome is Outcome.INCONCLUSIVE


def test_a_huge_error_is_a_bug_even_where_the_value_is_ill_conditioned() -> None:
    right = torch.full((8,), 1e-9, dtype=torch.float64)
    eager, other = torch.full((8,), 2e-8), torch.full((8,), -3e-8)
    assert judge(three_outputs(right, eager, torch.full((8,), 7.0), other)).signature == WRONG


def test_an_exact_program_allows_no_error_but_the_sign_of_zero() -> None:
    right = torch.tensor([0.0, 3.0, 2047.0], dtype=torch.float64)
    eager = right.float()
    assert judge(three_outputs(right, eager, torch.tensor([-0.0, 3.0, 2047.0]), exact=True)).outcome is Outcome.PASS
    one_ulp = torch.nextafter(eager, torch.tensor(torch.inf))
    assert judge(three_outputs(right, eager, one_ulp, exact=True)).signature == WRONG


def test_an_exact_program_is_excused_where_equal_values_were_chosen_from() -> None:
    right = torch.tensor([1.0, 3.0], dtype=torch.float64)
    other = torch.tensor([1.0, 4.0])
    assert judge(three_outputs(right, right.float(), other, other, exact=True)).outcome is Outcome.EXCUSED


def test_a_python_number_has_the_precision_of_float32() -> None:
    right = torch.tensor(1 / 3, dtype=torch.float64)
    compiled = torch.tensor(float(torch.tensor(1 / 3 * (1 + 1e-7), dtype=torch.float32)), dtype=torch.float64)
    assert judge(three_outputs(right, right, compiled)).outcome is Outcome.PASS


def test_results_below_the_smallest_normal_number_may_be_flushed_to_zero() -> None:
    right = torch.tensor([1e-40, -1e-41], dtype=torch.float64)
    assert judge(three_outputs(right, right.float(), torch.zeros(2))).outcome is Outcome.PASS


def test_complex_results_are_compared_part_by_part() -> None:
    right = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128)
    eager = right.to(torch.complex64)
    assert judge(three_outputs(right, eager, eager.clone())).outcome is Outcome.PASS
    assert judge(three_outputs(right, eager, eager.conj())).signature == WRONG


def test_without_a_reference_eager_is_what_is_right() -> None:
    x = normal(100)
    observations = seen(run("reference"), run("eager", x), run("compiled", x * 1.01))
    assert judge(observations).signature == WRONG


def test_empty_tensors_agree() -> None:
    empty = torch.empty((0, 3))
    assert judge(three_outputs(empty.double(), empty, empty.clone())).outcome is Outcome.PASS
