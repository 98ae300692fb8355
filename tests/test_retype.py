"""Edits of programs: what eager refuses, or leaves undefined, is no program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuzzer.generators import generate
from fuzzer.program import DType, InputSpec, Layout, LayoutKind, Mode, Node, Program, Regime, TensorType
from fuzzer.retype import retype, without_dead

FLOATS = TensorType(shape=(6, 4), dtype=DType.FLOAT32)
WHOLE = TensorType(shape=(6, 4), dtype=DType.INT64)
ROWS = TensorType(shape=(3,), dtype=DType.INT64, high=6)
UNKNOWN = TensorType(shape=(), dtype=DType.FLOAT64)
"""Retype reads no types of statements."""


def statement(name: str, op: str, *args: str, **params: object) -> Node:
    return Node(name=name, op=op, args=args, params=tuple(params.items()), type=UNKNOWN)  # type: ignore[arg-type]  # literals


def program(inputs: list[InputSpec], *nodes: Node) -> Program | None:
    return retype(inputs, nodes, [nodes[-1].name], Mode())


X = InputSpec(name="x", type=FLOATS)
Y = InputSpec(name="y", type=TensorType(shape=(3, 4), dtype=DType.FLOAT32))


def test_types_are_inferred_anew_for_every_generated_program() -> None:
    for index in range(50):
        whole = generate(11, index)
        blank = [replace(node, type=UNKNOWN) for node in whole.nodes]
        assert retype(whole.inputs, blank, whole.outputs, whole.mode) == whole


@pytest.mark.parametrize(
    "node",
    [
        statement("v", "sum", "x", dim=2),
        statement("v", "sum", "x"),
        statement("v", "sum", "x", dim=0, keepdim=True),
        statement("v", "sum", "nothing", dim=0),
        statement("v", "no_such_operator", "x"),
        statement("v", "add", "x"),
        statement("x", "relu", "x"),
        statement("v", "reshape", "x", shape=(5, 5)),
    ],
)
def test_an_ill_typed_edit_is_none(node: Node) -> None:
    assert program([X], node) is None


def test_an_output_that_is_gone_is_none() -> None:
    assert retype([X], [], ["v"], Mode()) is None
    assert retype([X], [], [], Mode()) is None
    assert retype([X], [], ["x"], Mode()) is not None


def test_index_put_needs_an_unmodified_input_of_different_values() -> None:
    put = statement("v", "index_put", "x", "rows", "y")
    unique = InputSpec(name="rows", type=ROWS, regime=Regime.UNIQUE)
    repeated = InputSpec(name="rows", type=ROWS, regime=Regime.INDEX)
    assert program([X, Y, unique], put) is not None
    assert program([X, Y, repeated], put) is None
    written = statement("w", "mul_number_", "rows", k=0)
    assert program([X, Y, unique], written, put) is None


def test_an_expanded_tensor_is_not_written() -> None:
    write = statement("v", "add_number_", "x", k=1)
    expanded = replace(X, layout=Layout(kind=LayoutKind.EXPANDED, dims=(0,)))
    assert program([X], write) is not None
    assert program([expanded], write) is None
    assert program([X], statement("w", "expand", "x", shape=(2, 6, 4)), statement("v", "add_number_", "w", k=1)) is None


def test_what_is_written_is_not_read_through_another_view() -> None:
    square = InputSpec(name="x", type=TensorType(shape=(4, 4), dtype=DType.FLOAT32))
    turned = statement("t", "mT", "x")
    assert program([square], turned, statement("v", "add_", "x", "t")) is None
    copied = statement("c", "clone", "t")
    assert program([square], turned, copied, statement("v", "add_", "x", "c")) is not None


def test_a_write_does_not_break_the_bound_of_an_index() -> None:
    rows = InputSpec(name="rows", type=ROWS, regime=Regime.INDEX)
    assert program([rows], statement("v", "add_number_", "rows", k=1)) is None
    assert program([rows], statement("v", "clamp_", "rows", low=0, high=5)) is not None
    assert program([InputSpec(name="n", type=WHOLE, regime=Regime.EXACT)], statement("v", "add_number_", "n", k=1))


def test_a_regime_that_does_not_suit_is_none_and_bounds_follow_the_regime() -> None:
    assert retype([replace(X, regime=Regime.INDEX)], [], ["x"], Mode()) is None
    zeros = retype([InputSpec(name="rows", type=ROWS, regime=Regime.ZEROS, seed=5)], [], ["rows"], Mode())
    assert zeros is not None
    assert zeros.inputs[0].type == replace(ROWS, high=1)
    assert zeros.inputs[0].seed == 0


def test_dead_statements_go_and_writes_to_live_memory_stay() -> None:
    whole = retype(
        [X, Y],
        [
            statement("dead", "relu", "y"),
            statement("view", "mT", "x"),
            statement("write", "add_number_", "view", k=1),
            statement("v", "abs", "x"),
        ],
        ["v"],
        Mode(),
    )
    assert whole is not None
    left = without_dead(whole)
    assert [node.name for node in left.nodes] == ["view", "write", "v"]
    assert [spec.name for spec in left.inputs] == ["x"]
