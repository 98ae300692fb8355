"""Perturbed eager runs disagree with plain eager where a result is not determined, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import torch

from fuzzer.observation import Observation, Observations
from fuzzer.oracles import judge
from fuzzer.program import Case
from fuzzer.targets.harness import copy_inputs, load, run_once
from fuzzer.targets.perturbed import LastOfEquals, Move, Noise, perturbed_runs
from fuzzer.targets.reference import run_reference
from fuzzer.verdict import Outcome, Stage


def program(inputs: str, body: str) -> Case:
    return Case(
        source=f"import torch\n\n\ndef inputs():\n    return {inputs},\n\n\ndef program(x):\n    return {body}\n"
    )


def quiet(stage: Stage, step: str) -> None:
    """Nobody listens."""


def everywhere(case: Case, *, training: bool = False) -> Observations:
    """Reference, eager and all perturbed runs; eager stands for the compiled run too."""
    loaded = load(case)
    reference, exact = run_reference(loaded, training, quiet)
    eager = run_once(
        loaded.function,
        copy_inputs(loaded.inputs, training=training),
        loaded.names,
        target="eager",
        stage=Stage.EAGER,
        training=training,
        breadcrumb=quiet,
    )
    more = [run for batch in perturbed_runs(loaded, training, quiet, exact=exact) for run in batch]
    return Observations(reference=reference, eager=(eager, *more), compiled=(eager,), exact=exact)


def compiled_as(observations: Observations, *values: torch.Tensor) -> Observations:
    """The same, with a compiled run that returned these values."""
    eager: Observation = observations.eager[0]
    outputs = tuple(replace(leaf, value=value) for leaf, value in zip(eager.outputs, values, strict=True))
    return replace(observations, compiled=(replace(eager, outputs=outputs),))


def spread(observations: Observations) -> torch.Tensor:
    """Largest deviation of any run from plain eager, per element of the first output."""
    plain = observations.eager[0].outputs[0].value.double()
    return torch.stack([(run.outputs[0].value.double() - plain).abs() for run in observations.eager]).amax(0)


NORMAL = "torch.randn(64, 33, generator=torch.Generator().manual_seed(0))"


def test_rounding_operators_are_moved_by_a_few_units_in_the_last_place() -> None:
    observations = everywhere(program(NORMAL, "x.sin() + 2"))
    moved = spread(observations)
    assert len(observations.eager) > 10
    assert moved.min() > 0
    assert moved.max() < 1e-5


def test_movements_choices_and_comparisons_of_integers_are_not_moved() -> None:
    case = program("torch.arange(-8.0, 8.0)", "(x * 2).relu().flip(0).sigmoid().floor() + (x > 2)")
    assert spread(everywhere(case)).max() == 0


def test_an_exact_program_is_only_run_with_other_ties() -> None:
    observations = everywhere(program("torch.arange(8.0)", "(x * 2).sum()"))
    assert [run.target for run in observations.eager] == ["eager", "eager, last of equals"]


def test_the_last_of_equal_values_is_chosen_in_every_operator_that_chooses() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    with LastOfEquals():  # type: ignore[no-untyped-call]  # torch's own
        assert x.argmax(1).tolist() == [2, 3]
        assert x.argmax().item() == 2
        assert x.argmax(1, keepdim=True).tolist() == [[2], [3]]
        assert x.argmin(0).tolist() == [0, 1, 1, 0]
        assert x.max(1).indices.tolist() == [2, 3]
        assert x.min(1).indices.tolist() == [3, 3]
        assert x.sort(1).indices.tolist() == [[3, 0, 2, 1], [3, 2, 1, 0]]
        assert x.sort(1).values.tolist() == [[0, 1, 3, 3], [2, 2, 2, 2]]
        assert x.sort(stable=True, dim=1).indices.tolist() == [[3, 0, 1, 2], [0, 1, 2, 3]]
        assert x.topk(2, 1).indices[0].tolist() == [2, 1]
        assert torch.tensor([1.0, torch.nan, torch.nan]).argmax().item() == 2
        assert torch.tensor(5.0).argmax().item() == 0


def test_another_choice_among_equal_values_is_excused_and_a_wrong_one_is_not() -> None:
    observations = everywhere(program("torch.tensor([[1.0, 3.0, 3.0], [5.0, 4.0, 0.0]])", "x.argmax(1)"))
    assert judge(compiled_as(observations, torch.tensor([2, 0]))).outcome is Outcome.EXCUSED
    assert judge(compiled_as(observations, torch.tensor([1, 1]))).outcome is Outcome.BUG


def test_a_decision_on_a_near_tie_is_excused() -> None:
    observations = everywhere(program("torch.tensor([-3.468e-4, 1.0])", "x.cos().floor()"))
    assert judge(compiled_as(observations, torch.tensor([1.0, 0.0]))).outcome is not Outcome.BUG
    assert judge(compiled_as(observations, torch.tensor([1.0, 1.0]))).outcome is Outcome.BUG


def test_a_sum_one_by_one_passes_and_one_that_misses_a_term_does_not() -> None:
    x = torch.randn(4096, 16, generator=torch.Generator().manual_seed(0))
    observations = everywhere(program("torch.randn(4096, 16, generator=torch.Generator().manual_seed(0))", "x.sum(0)"))
    one_by_one = torch.zeros(16)
    for row in x:
        one_by_one += row
    assert judge(compiled_as(observations, one_by_one)).outcome is Outcome.PASS
    assert judge(compiled_as(observations, x[1:].sum(0))).outcome is Outcome.BUG


def test_a_variance_by_another_formula_passes() -> None:
    x = torch.randn(16, 65, generator=torch.Generator().manual_seed(0)) + 100
    observations = everywhere(
        program("torch.randn(16, 65, generator=torch.Generator().manual_seed(0)) + 100", "x.var(1, correction=0)")
    )
    shifted = (x - x[:, :1]).square().mean(1) - (x - x[:, :1]).mean(1).square()
    assert judge(compiled_as(observations, shifted)).outcome is Outcome.PASS


def test_what_is_left_of_a_cancellation_is_never_a_bug() -> None:
    observations = everywhere(program(NORMAL, "x.var(1) - x.std(1).square()"))
    wrong = torch.full((64,), 3e-7)
    assert judge(compiled_as(observations, wrong)).outcome in (Outcome.PASS, Outcome.INCONCLUSIVE)


def test_gradients_are_perturbed_too() -> None:
    observations = everywhere(program(NORMAL, "x.exp().sum(0)"), training=True)
    plain = observations.eager[0].gradients[0].value
    assert any(not torch.equal(run.gradients[0].value, plain) for run in observations.eager[2:])


def test_noise_leaves_zeros_infinities_and_integral_inputs_alone() -> None:
    noise = Noise(seed=0, move=Move(ulps=4))
    special = torch.tensor([0.0, torch.inf, -torch.inf, 0.1])
    moved = noise.move_input(special)
    assert moved[:3].tolist() == special[:3].tolist()
    assert moved[3] != special[3]
    assert torch.equal(noise.move_input(torch.arange(5.0)), torch.arange(5.0))


def test_perturbed_runs_are_the_same_every_time() -> None:
    case = program(NORMAL, "x.softmax(1).log()")
    one, other = everywhere(case), everywhere(case)
    for first, second in zip(one.eager, other.eager, strict=True):
        assert torch.equal(first.outputs[0].value, second.outputs[0].value)
