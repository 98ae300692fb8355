"""The search honours its budget, asks nothing twice, and depends on the answers only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, pairwise

import pytest

from fuzzer.minimize import Budget, Minimized, minimize, size
from fuzzer.program import DType, FuzzerError, InputSpec, Mode, Node, Program, TensorType

SHAPE = TensorType(shape=(4, 8), dtype=DType.FLOAT32)


def chain(*ops: str) -> Program:
    """One input, and statements that each work on the one before."""
    names = ["x", *(f"value{position}" for position in range(len(ops)))]
    nodes = tuple(
        Node(name=names[position + 1], op=op, args=(names[position],), type=SHAPE) for position, op in enumerate(ops)
    )
    inputs = (InputSpec(name="x", type=SHAPE, seed=7),)
    return Program(inputs=inputs, nodes=nodes, outputs=(names[-1],), mode=Mode(training=True, calls=3))


LONG = chain("relu", "abs", "sin", "relu", "cos", "abs", "tanh", "relu", "sin", "cos")


class Recorder:
    """A predicate over the operators of a program that remembers what it was asked."""

    def __init__(self, holds: Callable[[list[str]], bool]) -> None:
        self.holds = holds
        self.batches: list[tuple[Program, ...]] = []

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        self.batches.append(tuple(programs))
        return [self.holds([node.op for node in program.nodes]) for program in programs]

    @property
    def asked(self) -> list[Program]:
        return [program for batch in self.batches for program in batch]


def has_cos_and_abs(ops: list[str]) -> bool:
    return "cos" in ops and "abs" in ops


@pytest.mark.parametrize("parallel", [1, 2, 3, 7])
def test_result_does_not_depend_on_how_many_candidates_a_batch_holds(parallel: int) -> None:
    found = minimize(LONG, Recorder(has_cos_and_abs), parallel=parallel)
    assert found.program == minimize(LONG, Recorder(has_cos_and_abs), parallel=1).program
    assert sorted(node.op for node in found.program.nodes) == ["abs", "cos"]


def test_no_candidate_is_evaluated_twice_and_no_batch_is_too_large() -> None:
    recorder = Recorder(has_cos_and_abs)
    found = minimize(LONG, recorder, parallel=3)
    assert len(set(recorder.asked)) == len(recorder.asked) == found.evaluations
    assert max(len(batch) for batch in recorder.batches) <= 3


@pytest.mark.parametrize("evaluations", [0, 1, 2, 5, 11])
def test_budget_of_evaluations_is_never_exceeded_and_leaves_the_best_so_far(evaluations: int) -> None:
    recorder = Recorder(has_cos_and_abs)
    found = minimize(LONG, recorder, budget=Budget(evaluations=evaluations))
    assert found.exhausted
    assert found.evaluations == len(recorder.asked) <= evaluations
    assert found.program is LONG or has_cos_and_abs([node.op for node in found.program.nodes])
    assert size(found.program) <= size(LONG)


def test_more_budget_never_gives_a_larger_program() -> None:
    sizes = [
        size(minimize(LONG, Recorder(has_cos_and_abs), budget=Budget(evaluations=limit)).program)
        for limit in range(0, 40, 4)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_budget_of_seconds_ends_the_search() -> None:
    ticks = count()
    recorder = Recorder(has_cos_and_abs)
    found = minimize(LONG, recorder, budget=Budget(seconds=5), clock=lambda: float(next(ticks)))
    assert found.exhausted
    assert 0 < len(recorder.batches) <= 5


def test_stop_ends_the_search_with_the_best_so_far() -> None:
    recorder = Recorder(has_cos_and_abs)
    found = minimize(LONG, recorder, stop=lambda: len(recorder.batches) >= 4)
    assert found.exhausted
    assert len(recorder.batches) == 4
    assert has_cos_and_abs([node.op for node in found.program.nodes])


def test_search_without_limits_ends_and_says_so() -> None:
    found = minimize(LONG, Recorder(has_cos_and_abs))
    assert not found.exhausted
    again = minimize(found.program, Recorder(has_cos_and_abs))
    assert (again.program, again.steps) == (found.program, 0)


def test_every_improvement_is_reported_and_smaller_than_the_one_before() -> None:
    seen: list[Minimized] = []
    found = minimize(LONG, Recorder(has_cos_and_abs), on_progress=seen.append)
    sizes = [size(LONG), *(size(progress.program) for progress in seen)]
    assert all(later < earlier for earlier, later in pairwise(sizes))
    assert seen[-1].program == found.program
    assert len(seen) == found.steps


def test_program_that_nothing_smaller_replaces_is_returned_as_it_was() -> None:
    found = minimize(LONG, Recorder(lambda ops: False))
    assert found.program is LONG
    assert (found.steps, found.exhausted) == (0, False)


def test_predicate_that_skips_candidates_is_refused() -> None:
    with pytest.raises(FuzzerError, match="answered 0 times for 2 candidates"):
        minimize(LONG, lambda programs: [])


def test_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="budget of -1 evaluations"):
        Budget(evaluations=-1)
