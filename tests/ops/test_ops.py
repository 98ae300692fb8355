"""Generic tests over every operator: adding a record is adding its tests."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from fuzzer.generators.magnitude import input_size, node_size
from fuzzer.ops import BY_NAME, OPS, OpSpec, Params, Trait, template_of
from fuzzer.program import DType, Program, Regime, ScalarType, TensorType, Type
from fuzzer.source import parse_program, print_program
from tests.ops.drawing import misused, program_of

DRAWS = 20
WHOLE = (Regime.EXACT, Regime.ZEROS, Regime.ONES)
EVERY = pytest.mark.parametrize("spec", OPS, ids=[spec.name for spec in OPS])


def programs_of(spec: OpSpec, regime: Regime | None = None) -> list[Program]:
    drawn = [program_of(spec, number, regime) for number in range(DRAWS)]
    return [program for program in drawn if program is not None]


def run(program: Program) -> tuple[list[torch.Tensor], Any]:
    """The inputs, as they are after the run, and the last statement's value."""
    space: dict[str, Any] = {}
    exec(compile(print_program(program), "<program>", "exec"), space)
    inputs = list(space["inputs"]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of numeric edge cases, such as a variance over few elements
        return inputs, space["program"](*inputs)


def type_matches(found: Any, expected: Type) -> bool:
    if isinstance(expected, ScalarType):
        kinds = {DType.FLOAT64: float, DType.INT64: int, DType.BOOL: bool}
        return type(found) is kinds[expected.dtype] and (expected.high is None or found in range(expected.high + 1))
    if not isinstance(found, torch.Tensor) or tuple(found.shape) != expected.shape:
        return False
    if found.dtype is not getattr(torch, expected.dtype):
        return False
    return expected.high is None or bool(((found >= 0) & (found < expected.high)).all())


@EVERY
def test_inferred_type_is_what_eager_returns(spec: OpSpec) -> None:
    drawn = programs_of(spec)
    assert len(drawn) >= DRAWS // 5, f"only {len(drawn)} of {DRAWS} draws found arguments for {spec.name}"
    for program in drawn:
        _, value = run(program)
        assert type_matches(value, program.nodes[-1].type), f"{program.nodes[-1]} gave\n{value}"


@EVERY
def test_eager_runs_whatever_inference_accepts(spec: OpSpec) -> None:
    for number in range(DRAWS):
        program = misused(spec, number)
        if program is not None:
            _, value = run(program)
            assert type_matches(value, program.nodes[-1].type), f"{program.nodes[-1]} gave\n{value}"


@EVERY
def test_text_parses_back_to_the_same_program(spec: OpSpec) -> None:
    for program in programs_of(spec):
        text = print_program(program)
        assert parse_program(text, program.mode) == program
        assert print_program(parse_program(text, program.mode)) == text


def aliases(value: torch.Tensor, others: list[torch.Tensor]) -> bool:
    place = value.untyped_storage().data_ptr()
    return any(place == other.untyped_storage().data_ptr() for other in others)


@EVERY
def test_only_operators_that_say_so_share_memory_or_write_to_an_argument(spec: OpSpec) -> None:
    may_share = spec.traits & {Trait.ALIASES, Trait.MUTATES}
    for program in programs_of(spec):
        if len(program.nodes) > 1:
            continue
        space: dict[str, Any] = {}
        exec(compile(print_program(program), "<program>", "exec"), space)
        before = space["inputs"]()
        inputs, value = run(program)
        if isinstance(value, torch.Tensor) and not may_share:
            assert not aliases(value, inputs), print_program(program)
        written = [k for k, (old, new) in enumerate(zip(before, inputs, strict=True)) if not same(old, new)]
        if Trait.MUTATES in spec.traits:
            assert isinstance(value, torch.Tensor)
            target = [spec.name for spec in program.inputs].index(program.nodes[-1].args[0])
            assert aliases(value, [inputs[target]])
        else:
            assert not written, print_program(program)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.nan_to_num(), right.nan_to_num())


@EVERY
def test_values_stay_within_the_bound_that_the_operator_declares(spec: OpSpec) -> None:
    for program in programs_of(spec):
        sizes = {spec.name: input_size(spec) for spec in program.inputs}
        types = program.types
        for node in program.nodes:
            arguments = [sizes[name] for name in node.args], [types[name] for name in node.args]
            sizes[node.name] = node_size(BY_NAME[node.op], *arguments, Params(node.params))
        _, value = run(program)
        bound = sizes[program.nodes[-1].name]
        found = torch.as_tensor(value).double()
        finite = found[found.isfinite()].abs()
        assert finite.numel() == 0 or finite.max() <= 1.02 * bound + 1e-3, f"{print_program(program)}{bound}"


@pytest.mark.parametrize("spec", [spec for spec in OPS if Trait.EXACT in spec.traits], ids=lambda spec: str(spec.name))
def test_exact_operators_turn_integers_into_integers(spec: OpSpec) -> None:
    for program in programs_of(spec, Regime.EXACT):
        params = dict(program.nodes[-1].params).values()
        if any(isinstance(value, float) and not value.is_integer() for value in params):
            continue
        if any(spec.type.dtype.is_floating and spec.regime not in WHOLE for spec in program.inputs):
            continue
        _, value = run(program)
        found = torch.as_tensor(value).double()
        found = found[found.isfinite() & (found.abs() < 256)]
        assert torch.equal(found, found.round()), print_program(program)


def test_templates_fill_exactly_the_slots_and_the_parameters_that_are_drawn() -> None:
    for spec in OPS:
        holes = set(template_of(spec.name).holes) - {"out"}
        slots = {slot.name for slot in spec.slots}
        assert slots <= holes, spec.name
        program = next(found for found in (program_of(spec, k) for k in range(200)) if found is not None)
        assert {name for name, _ in program.nodes[-1].params} == holes - slots, spec.name


def test_a_wrong_parameter_is_ill_typed_rather_than_an_error() -> None:
    from fuzzer.ops import IllTyped

    x = TensorType(shape=(2, 3), dtype=DType.FLOAT32)
    for params in (Params.of(dim=2), Params.of(dim="last"), Params.of(dim=(0, 0)), Params()):
        with pytest.raises(IllTyped):
            BY_NAME["sum"].infer((x,), params)
