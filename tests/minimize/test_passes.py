"""Every candidate of every pass is a program in its own right, and smaller than the one it came from."""

from __future__ import annotations

import pytest

from fuzzer.generators import generate
from fuzzer.minimize import PASSES, Pass, size
from fuzzer.minimize.draft import renumber
from fuzzer.program import Program
from fuzzer.retype import retype
from fuzzer.source import parse_program, print_program

SEED = 20
PROGRAMS = 40


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [generate(SEED, index) for index in range(PROGRAMS)]


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
def test_candidates_are_smaller_well_typed_and_survive_printing_and_parsing(
    step: Pass, programs: list[Program]
) -> None:
    for program in programs:
        candidates = step(program)
        assert len(set(candidates)) == len(candidates)
        for candidate in candidates[:40]:
            assert size(candidate) < size(program)
            assert renumber(candidate) == candidate
            assert retype(candidate.inputs, candidate.nodes, candidate.outputs, candidate.mode) == candidate
            assert parse_program(print_program(candidate), candidate.mode) == candidate


def test_every_pass_finds_something_to_do(programs: list[Program]) -> None:
    idle = {step.name for step in PASSES if not any(step(program) for program in programs)}
    assert idle <= {"drop-dead", "drop-16-statements"}


def test_pass_names_are_unique() -> None:
    assert len({step.name for step in PASSES}) == len(PASSES)


def test_candidates_are_the_same_every_time(programs: list[Program]) -> None:
    for step in PASSES:
        assert step(programs[0]) == step(programs[0])
