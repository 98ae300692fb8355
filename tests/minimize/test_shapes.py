"""Sizes and dims shrink through statements whose parameters depend on them."""

from __future__ import annotations

import pytest

from fuzzer.minimize.draft import Draft, settle
from fuzzer.minimize.refit import drop_dim, resize, resize_dim
from fuzzer.minimize.shapes import ladder
from fuzzer.program import DType, InputSpec, Literal, Mode, Node, Program, Regime, TensorType
from fuzzer.retype import retype


def given(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> InputSpec:
    return InputSpec(name=name, type=TensorType(shape=shape, dtype=dtype))


def let(name: str, op: str, *args: str, **params: Literal) -> Node:
    return Node(name=name, op=op, args=args, params=tuple(params.items()), type=given(name).type)


def typed(inputs: list[InputSpec], nodes: list[Node]) -> Program:
    program = retype(tuple(inputs), tuple(nodes), (nodes[-1].name,), Mode())
    assert program is not None
    return program


def settled(edited: Draft | None) -> Program:
    assert edited is not None
    return next(settle(edited))


def params(program: Program) -> list[dict[str, Literal]]:
    return [dict(node.params) for node in program.nodes]


SPLIT = typed(
    [given("x", 96, 1200), given("p", 300)],
    [
        let("a", "reshape", "x", shape=(96, 4, 300)),
        let("b", "mul", "a", "p"),
        let("c", "reshape", "b", shape=(96, 1200)),
        let("d", "sub", "c", "x"),
    ],
)


@pytest.mark.parametrize(
    ("value", "smaller", "wide", "split"),
    [(4, 2, 600, (96, 2, 300)), (300, 5, 20, (96, 4, 5)), (96, 1, 1200, (1, 4, 300)), (1200, 8, 8, (96, 4, 2))],
)
def test_sizes_that_are_products_follow(value: int, smaller: int, wide: int, split: tuple[int, ...]) -> None:
    found = settled(resize(SPLIT, value, smaller))
    assert found.inputs[0].type.shape == (split[0], wide)
    assert params(found)[0] == {"shape": split}
    assert found.inputs[1].type.shape == (split[2],)


def test_sizes_after_a_concatenation_follow() -> None:
    program = typed(
        [given("x", 6, 5), given("y", 4, 5), given("z", 10, 5)],
        [let("a", "cat", "x", "y", dim=0), let("b", "mul", "a", "z")],
    )
    found = settled(resize(program, 6, 2))
    assert [spec.type.shape for spec in found.inputs] == [(2, 5), (4, 5), (6, 5)]


def test_one_dim_shrinks_where_another_of_the_same_size_must_not() -> None:
    program = typed([given("x", 16, 16)], [let("a", "sum", "x", dim=1)])
    found = settled(resize_dim(program, 0, 1, 3))
    assert found.inputs[0].type.shape == (16, 3)


def test_dropped_dim_is_followed_through_permutes_and_reductions() -> None:
    program = typed(
        [given("x", 3, 5, 7)],
        [let("a", "permute", "x", dims=(2, 0, 1)), let("b", "sum", "a", dim=-1), let("c", "amax", "b", dim=1)],
    )
    found = settled(drop_dim(program, {"x": 2}))
    assert found.inputs[0].type.shape == (3, 5)
    assert params(found) == [{"dims": (0, 1)}, {"dim": -1}, {"dim": 0}]


def test_dim_that_a_reduction_names_alone_stays() -> None:
    program = typed([given("x", 3, 5)], [let("a", "sum", "x", dim=1)])
    assert drop_dim(program, {"x": 1}) is None


def test_bounds_of_indices_follow_the_size_that_they_index() -> None:
    index = InputSpec(name="i", type=TensorType(shape=(9,), dtype=DType.INT64, high=40), regime=Regime.INDEX)
    program = typed([given("x", 40, 6), index], [let("a", "relu", "x"), let("b", "index_0", "a", "i")])
    found = settled(resize(program, 40, 3))
    assert found.inputs[0].type.shape == (3, 6)
    assert found.inputs[1].type.high == 3


def test_distinct_values_never_outnumber_their_bound() -> None:
    index = InputSpec(name="i", type=TensorType(shape=(9,), dtype=DType.INT64, high=40), regime=Regime.UNIQUE)
    program = typed([index], [let("a", "relu", "i")])
    assert resize(program, 40, 5) is None
    assert resize(program, 40, 9) is not None


@pytest.mark.parametrize("threshold", [2, 3, 7, 20, 1000, 2047, 2048, 5000, 8191])
def test_ladder_is_a_binary_search(threshold: int) -> None:
    """Restarting it after each success reaches any threshold in about two questions for each bit, squared at worst."""
    value, asked = 8192, set[int]()
    while True:
        for smaller in ladder(value):
            asked.add(smaller)
            if smaller >= threshold:
                value = smaller
                break
        else:
            break
    assert value == threshold
    assert len(asked) <= 90
