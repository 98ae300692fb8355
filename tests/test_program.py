"""The records of a program cannot be built ill-formed."""

from __future__ import annotations

import pytest

from fuzzer.program import DType, InputSpec, Node, Program, TensorType

FLOATS = TensorType(shape=(2, 3), dtype=DType.FLOAT32)
X = InputSpec(name="x", type=FLOATS)


def node(name: str, *args: str) -> Node:
    return Node(name=name, op="relu", args=args, type=FLOATS)


def test_sizes_are_not_negative_and_only_integers_are_bounded() -> None:
    with pytest.raises(ValueError, match="negative size"):
        TensorType(shape=(-1,), dtype=DType.FLOAT32)
    with pytest.raises(ValueError, match="only integer tensors"):
        TensorType(shape=(1,), dtype=DType.FLOAT32, high=3)


@pytest.mark.parametrize(
    ("inputs", "nodes", "outputs", "words"),
    [
        ((X, X), (), ("x",), "share a name"),
        ((X,), (node("v", "w"), node("w", "x")), ("v",), "before it is defined"),
        ((X,), (node("x", "x"),), ("x",), "defined twice"),
        ((X,), (), (), "at least one"),
        ((X,), (), ("v",), "not defined"),
    ],
)
def test_names_are_defined_once_and_before_use(
    inputs: tuple[InputSpec, ...], nodes: tuple[Node, ...], outputs: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Program(inputs=inputs, nodes=nodes, outputs=outputs)


def test_types_and_numbers_of_elements_are_those_of_the_records() -> None:
    program = Program(inputs=(X,), nodes=(node("v", "x"),), outputs=("v",))
    assert program.types == {"x": FLOATS, "v": FLOATS}
    assert (FLOATS.numel, FLOATS.rank) == (6, 2)
    assert TensorType(shape=(), dtype=DType.INT64).numel == 1
