"""Mutation, numerics and gradients: which oracle speaks, and which verdict wins."""

from __future__ import annotations

import torch

from fuzzer.observation import Observations
from fuzzer.oracles import judge, settled
from fuzzer.verdict import Kind, Outcome, Signature, Stage
from tests.oracles.observing import run, seen

ONES = torch.ones(4, 4)


def test_an_input_that_was_not_mutated_is_a_bug_of_mutation() -> None:
    verdict = judge(
        seen(
            run("reference", ONES.double() * 2, inputs=[ONES.double() * 2]),
            run("eager", ONES * 2, inputs=[ONES * 2]),
            run("compiled", ONES * 2, inputs=[ONES]),
        )
    )
    assert verdict.signature == Signature(kind=Kind.MUTATION, stage=Stage.JUDGE, origin="input")
    assert verdict.oracle == "mutation"


def test_an_input_that_was_mutated_without_need_is_a_bug_of_mutation() -> None:
    verdict = judge(
        seen(
            run("reference", inputs=[ONES.double()]), run("eager", inputs=[ONES]), run("compiled", inputs=[ONES * 1.5])
        )
    )
    assert verdict.signature is not None
    assert verdict.signature.kind is Kind.MUTATION


def test_a_gradient_that_misses_a_term_is_a_bug_of_the_gradient() -> None:
    x = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))
    full, partial = x * 2 + x.cos(), x * 2
    verdict = judge(
        seen(
            run("reference", gradients=[full.double()]),
            run("eager", gradients=[full]),
            run("compiled", gradients=[partial]),
        )
    )
    assert verdict.signature == Signature(kind=Kind.GRADIENT, stage=Stage.JUDGE, origin="gradient")


def test_a_gradient_that_is_not_there_is_a_bug() -> None:
    verdict = judge(seen(run("reference"), run("eager", gradients=[ONES]), run("compiled")))
    assert verdict.signature == Signature(kind=Kind.GRADIENT, stage=Stage.JUDGE, origin="missing")


def test_a_gradient_of_another_dtype_is_a_bug() -> None:
    verdict = judge(
        seen(run("reference"), run("eager", gradients=[ONES]), run("compiled", gradients=[ONES.to(torch.float16)]))
    )
    assert verdict.signature == Signature(kind=Kind.GRADIENT, stage=Stage.JUDGE, origin="dtype")


def excused_and(wrong: torch.Tensor) -> Observations:
    index = torch.tensor([1, 2, 3])
    tie = torch.tensor([1, 2, 4])
    return seen(
        run("reference", index, ONES.double()),
        run("eager", index, ONES),
        run("compiled", tie, wrong),
        run("eager, last of equals", tie, ONES),
    )


def test_a_bug_in_one_output_beats_an_excuse_in_another() -> None:
    assert judge(excused_and(ONES)).outcome is Outcome.EXCUSED
    assert judge(excused_and(ONES * 2)).outcome is Outcome.BUG


def test_every_call_of_the_compiled_function_is_judged() -> None:
    right, wrong = run("compiled", ONES), run("compiled, call 2", ONES * 2)
    observations = Observations(
        reference=run("reference", ONES.double()), eager=(run("eager", ONES),), compiled=(right, wrong)
    )
    assert judge(observations).outcome is Outcome.BUG


def test_an_honest_run_is_silent_and_settled() -> None:
    both = [run(target, ONES, inputs=[ONES], gradients=[ONES]) for target in ("eager", "compiled")]
    observations = seen(run("reference", ONES.double(), inputs=[ONES.double()], gradients=[ONES.double()]), *both)
    assert judge(observations).outcome is Outcome.PASS
    assert settled(observations)


def test_a_bug_is_not_settled_before_more_eager_runs_were_made() -> None:
    assert not settled(seen(run("reference"), run("eager", ONES), run("compiled", ONES * 2)))
