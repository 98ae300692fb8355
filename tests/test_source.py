"""Programs print to PyTorch that a person would write, and parse back exactly."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from fuzzer.generators import programs
from fuzzer.input_source import check_input, expression, regimes_of
from fuzzer.ops import IllTyped
from fuzzer.program import (
    DType,
    FuzzerError,
    InputSpec,
    Layout,
    LayoutKind,
    Mode,
    Program,
    Regime,
    TensorType,
)
from fuzzer.source import case_of, parse_program, print_program

LAYOUTS = (
    Layout(),
    Layout(kind=LayoutKind.PERMUTED, dims=(1, 0)),
    Layout(kind=LayoutKind.STRIDED, dims=(1,), offset=3, step=2),
    Layout(kind=LayoutKind.STRIDED, dims=(0,), offset=1),
    Layout(kind=LayoutKind.EXPANDED, dims=(0,)),
    Layout(kind=LayoutKind.EXPANDED, dims=(0, 1)),
)

WRITTEN = '''"""A sentence about it."""
import torch


def inputs():
    seeded = torch.Generator().manual_seed
    ids = torch.randint(0, 9, (5,), generator=seeded(4))
    table = torch.randint(-4, 5, (9, 4), generator=seeded(1))
    mask = torch.rand((5, 4), generator=seeded(2)) < 0.5
    return ids, table, mask


def program(ids, table, mask):
    """What it does."""
    rows = table[ids]   # look up
    kept = rows.masked_fill(mask,
                            0)
    total = kept.sum(-1)
    number = total.sum().item()
    return total, number
'''


def specs() -> list[InputSpec]:
    found = []
    for dtype, regime, layout in product(DType, Regime, LAYOUTS):
        high = 40 if regime in (Regime.INDEX, Regime.UNIQUE, Regime.LENGTHS) and dtype.is_integer else None
        shape = (6,) if regime is Regime.LENGTHS else (3, 4)
        spec = InputSpec(
            name="x0", type=TensorType(shape=shape, dtype=dtype, high=high), regime=regime, layout=layout, seed=12
        )
        try:
            found.append(check_input(spec))
        except IllTyped:
            continue
    return found


SPECS = specs()


def program_with(*inputs: InputSpec) -> Program:
    return Program(inputs=inputs, nodes=(), outputs=(inputs[0].name,))


@given(programs())
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_parsing_undoes_printing(program: Program) -> None:
    text = print_program(program)
    again = parse_program(text, program.mode)
    assert again == program
    assert print_program(again) == text
    assert case_of(program).source == text
    assert case_of(program).mode == program.mode


def test_every_dtype_has_inputs_of_several_regimes_and_layouts() -> None:
    for dtype in DType:
        assert len({spec.regime for spec in SPECS if spec.type.dtype is dtype}) >= 4
        assert len({spec.layout for spec in SPECS if spec.type.dtype is dtype}) == len(LAYOUTS)
    assert {regime for dtype in DType for flag in (True, False) for regime in regimes_of(dtype, flag)} == set(Regime)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.type.dtype}-{spec.regime}-{spec.layout.kind}")
def test_an_input_is_what_its_record_says_and_parses_back(spec: InputSpec) -> None:
    text = print_program(program_with(spec))
    assert parse_program(text, Mode()) == program_with(spec)
    (first,), (second,) = made(text), made(text)
    assert tuple(first.shape) == spec.type.shape
    assert first.dtype is getattr(torch, spec.type.dtype)
    assert torch.equal(first.nan_to_num(), second.nan_to_num())
    contiguous = spec.layout.kind is LayoutKind.CONTIGUOUS
    assert first.is_contiguous() or not contiguous
    if spec.type.high is not None:
        assert 0 <= int(first.min()) <= int(first.max()) < spec.type.high
    if spec.regime is Regime.UNIQUE:
        assert len(set(first.flatten().tolist())) == first.numel()
    if spec.regime is Regime.LENGTHS:
        assert int(first.sum()) == (spec.type.high or 0) - 1
        assert int(first.min()) >= 1
    if spec.layout.kind is LayoutKind.EXPANDED:
        assert all(first.stride(dim) == 0 for dim in spec.layout.dims)


def made(text: str) -> tuple[torch.Tensor, ...]:
    space: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), space)
    return tuple(space["inputs"]())


def test_dropping_an_input_does_not_change_the_others() -> None:
    left, right = SPECS[0], replace(SPECS[0], name="x1", seed=99)
    assert torch.equal(made(print_program(program_with(left, right)))[1], made(print_program(program_with(right)))[0])


def test_specials_hold_nan_and_both_infinities() -> None:
    spec = InputSpec(name="x0", type=TensorType(shape=(64, 64), dtype=DType.FLOAT16), regime=Regime.SPECIALS)
    (value,) = made(print_program(program_with(check_input(spec))))
    assert value.isnan().any()
    assert (value == float("inf")).any()
    assert (value == float("-inf")).any()
    assert value.isfinite().float().mean() > 0.8


def test_names_docstrings_comments_and_line_breaks_of_a_person_are_read() -> None:
    program = parse_program(WRITTEN, Mode(dynamic=True))
    assert [spec.name for spec in program.inputs] == ["ids", "table", "mask"]
    assert [node.op for node in program.nodes[:3]] == ["index_0", "masked_fill", "sum"]
    assert [node.op for node in program.nodes[3:]] == ["sum_all", "item"]
    assert program.outputs == ("total", "number")
    assert program.mode == Mode(dynamic=True)


NESTED = """
import torch

def inputs():
    seeded = torch.Generator().manual_seed
    x = torch.randn((96, 1200), generator=seeded(1))
    p = torch.randn((300,), generator=seeded(2))
    n = torch.randint(-4, 5, (37, 20), generator=seeded(3))
    return x, p, n

def program(x, p, n):
    n.add_(1)
    x = x * 2
    y = ((x.reshape(96, 4, 300) * p).reshape(96, 1200) - x).abs().sum(1)
    return y, x.permute([1, 0]).softmax(0).sum([0, 1]), n * 2, torch.exp(-(x + x).abs())
"""


def test_nested_calls_dropped_results_and_names_assigned_twice_are_read_as_a_person_means_them() -> None:
    program = parse_program(NESTED, Mode())
    found = " ".join(node.op for node in program.nodes)
    assert found == (
        "add_number_ mul_number reshape mul reshape sub abs sum permute softmax sum mul_number add exp_of_negative"
    )
    again = parse_program(print_program(program), Mode())
    assert again == program
    spaces: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for text, space in zip((NESTED, print_program(program)), spaces, strict=True):
        exec(compile(text, "<program>", "exec"), space)
    left, right = (space["program"](*space["inputs"]()) for space in spaces)
    assert all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("table[ids]", "table.frobnicate(ids)", 15, "table.frobnicate(ids)"),
        ("mask = torch.rand((5, 4)", "mask = torch.poisson((5, 4)", 9, "none of the known forms"),
        ("kept.sum(-1)", "kept.sum(7)", 18, "dim 7 is outside rank 2"),
        ("return total, number", "return total << 1", 20, "no operator is written like this"),
        ("return total, number", "return total, missing", 20, "missing"),
        ("def program(ids, table, mask)", "def program(table, ids, mask)", 13, "same names in the same order"),
        ("total = kept", "total @= kept", 18, "no operator is written like this"),
        ("    ids = torch", "    ids[0] = torch", 7, "each input in one assignment"),
    ],
)
def test_what_is_not_ours_is_refused_with_its_line_and_a_remedy(old: str, new: str, line: int, words: str) -> None:
    with pytest.raises(FuzzerError) as refusal:
        parse_program(WRITTEN.replace(old, new), Mode())
    assert f"line {line}" in str(refusal.value)
    assert words in str(refusal.value)


def test_text_that_is_not_python_or_lacks_a_function_is_refused() -> None:
    with pytest.raises(FuzzerError, match="not Python"):
        parse_program("def inputs(:", Mode())
    with pytest.raises(FuzzerError, match="no function program"):
        parse_program("def inputs():\n    return ()\n", Mode())


@given(programs())
@settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_printed_text_is_python_with_one_expression_for_each_input(program: Program) -> None:
    module = ast.parse(print_program(program))
    assert [statement.name for statement in module.body if isinstance(statement, ast.FunctionDef)] == [
        "inputs",
        "program",
    ]
    for spec in program.inputs:
        ast.parse(expression(spec), mode="eval")
