"""What generated programs are like: deterministic, valid, finite, varied, and fast to make."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from fuzzer.generators import FAMILIES, generate, program_from_bytes, programs
from fuzzer.generators.inputs import draw_shape
from fuzzer.generators.policy import SizeClass
from fuzzer.ops import BY_NAME, OPS, Family, Trait
from fuzzer.program import DType, FuzzerError, LayoutKind, Program, Regime, TensorType
from fuzzer.retype import without_dead
from fuzzer.source import print_program
from tests.ops.drawing import RandomChoices

SAMPLE = [generate(0, index) for index in range(300)]

_PRINTS = """
import sys
from fuzzer.generators import generate
from fuzzer.source import print_program
for index in range(20):
    program = generate(4, index)
    sys.stdout.write(print_program(program) + str(program.mode))
assert "torch" not in sys.modules
"""


def printed_elsewhere(hash_seed: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [sys.executable, "-c", _PRINTS], env=environment, cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_the_same_seed_gives_the_same_bytes_in_every_process_without_torch_or_files(tmp_path: Path) -> None:
    here = "".join(print_program(generate(4, index)) + str(generate(4, index).mode) for index in range(20))
    assert printed_elsewhere("1", tmp_path) == printed_elsewhere("2", tmp_path) == here
    assert not list(tmp_path.iterdir())


def test_seeds_and_indices_give_different_programs() -> None:
    assert generate(0, 1) != generate(0, 2)
    assert generate(0, 1) != generate(1, 1)


def test_a_processor_makes_a_hundred_programs_a_second() -> None:
    begun = time.process_time()
    for index in range(100):
        generate(8, index)
    assert time.process_time() - begun < 1.0


def run(program: Program) -> list[Any]:
    """What eager returns, and in training differentiates; raises what eager raises."""
    space: dict[str, Any] = {}
    exec(compile(print_program(program), "<program>", "exec"), space)
    inputs = space["inputs"]()
    if program.mode.training:
        inputs = [value.requires_grad_() if value.is_floating_point() else value for value in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of numeric edge cases
        found = space["program"](*inputs)
        results = list(found) if isinstance(found, tuple) else [found]
        if program.mode.training:
            floats = [value for value in results if isinstance(value, torch.Tensor) and value.requires_grad]
            total = torch.stack([value.float().sum() for value in floats]).sum()
            torch.autograd.grad(total, [value for value in inputs if value.requires_grad], allow_unused=True)
    return results


def test_nearly_all_programs_are_valid_in_eager_and_nearly_all_results_are_finite() -> None:
    invalid, infinite = [], 0
    for program in SAMPLE:
        try:
            results = run(program)
        except Exception as error:
            invalid.append(f"{error}\n{print_program(program)}")
            continue
        floats = [value for value in results if isinstance(value, torch.Tensor) and value.is_floating_point()]
        special = any(spec.regime is Regime.SPECIALS for spec in program.inputs)
        infinite += not special and not all(value.isfinite().all() for value in floats)
    assert len(invalid) <= 0.02 * len(SAMPLE), "\n".join(invalid)
    assert infinite <= 0.04 * len(SAMPLE)


def test_programs_are_small_and_every_statement_matters() -> None:
    for program in SAMPLE:
        assert 1 <= len(program.outputs) <= 4
        assert 1 <= len(program.nodes) <= 40
        assert without_dead(program) == program
        for kind in program.types.values():
            assert not isinstance(kind, TensorType) or kind.numel <= 1_600_000


def test_all_dtypes_regimes_layouts_and_modes_occur() -> None:
    inputs = [spec for program in SAMPLE for spec in program.inputs]
    assert len({spec.type.dtype for spec in inputs}) >= len(DType) - 1
    assert len({spec.regime for spec in inputs}) >= len(Regime) - 1
    assert {spec.layout.kind for spec in inputs} == set(LayoutKind)
    modes = [program.mode for program in SAMPLE]
    assert 0.04 < sum(mode.training for mode in modes) / len(SAMPLE) < 0.3
    assert any(mode.dynamic for mode in modes)
    assert any(mode.config for mode in modes)
    assert any(mode.calls > 1 for mode in modes)


def test_a_fair_share_has_several_outputs_and_writes_in_place() -> None:
    several = sum(len(program.outputs) > 1 for program in SAMPLE)
    writes = sum(any(Trait.MUTATES in BY_NAME[node.op].traits for node in program.nodes) for program in SAMPLE)
    assert several > 0.4 * len(SAMPLE)
    assert 0.05 * len(SAMPLE) < writes < 0.5 * len(SAMPLE)


@pytest.mark.slow
def test_nearly_every_operator_occurs_within_a_thousand_programs() -> None:
    found = Counter(node.op for index in range(1000) for node in generate(21, index).nodes)
    missing = [spec.name for spec in OPS if not found[spec.name]]
    assert len(missing) <= 0.06 * len(OPS), missing


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restricted_campaign_is_about_its_family(family: Family) -> None:
    found = Counter(BY_NAME[node.op].family for index in range(60) for node in generate(2, index, (family,)).nodes)
    assert found[family] >= 60
    assert found[family] + found[Family.POINTWISE] + found[Family.REDUCTIONS] >= 0.7 * found.total()


def test_a_family_that_there_is_not_is_refused() -> None:
    with pytest.raises(FuzzerError, match="no family"):
        generate(0, 0, ("arithmetic",))


def test_bytes_choose_a_program_or_none() -> None:
    data = bytes(range(256)) * 20
    assert program_from_bytes(data) == program_from_bytes(data)
    assert program_from_bytes(b"") is None


def test_long_shapes_have_a_fold_of_at_least_2048_elements_that_is_no_smaller_than_the_rest() -> None:
    for number in range(200):
        shape = draw_shape(RandomChoices(number), SizeClass.LONG)
        total = torch.Size(shape).numel()
        leading = [torch.Size(shape[:count]).numel() for count in range(1, len(shape) + 1)]
        folds = [*leading, *(total // count for count in leading)]
        assert any(fold >= 2048 and fold >= total // fold for fold in folds), shape
        assert total <= 800_000 or total <= 1_600_000


@given(programs((Family.MASKING,)))
@settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_the_strategy_can_be_used_in_a_property_test(program: Program) -> None:
    assert program.nodes
