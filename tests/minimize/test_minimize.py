"""What planted defects shrink to: exactly the statements, sizes and settings that they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from fuzzer.generators import generate
from fuzzer.minimize import Minimized, minimize
from fuzzer.program import (
    DType,
    InputSpec,
    Layout,
    LayoutKind,
    Literal,
    Mode,
    Node,
    Program,
    Regime,
    TensorType,
    Type,
)
from fuzzer.retype import retype

F32 = DType.FLOAT32
ANY = TensorType(shape=(), dtype=F32)


def given(name: str, *shape: int, dtype: DType = F32, seed: int = 0) -> InputSpec:
    return InputSpec(name=name, type=TensorType(shape=shape, dtype=dtype), seed=seed)


def let(name: str, op: str, *args: str, **params: Literal) -> Node:
    """A statement; `typed` infers its type."""
    return Node(name=name, op=op, args=args, params=tuple(params.items()), type=ANY)


def typed(
    inputs: Sequence[InputSpec], nodes: Sequence[Node], outputs: Sequence[str], mode: Mode | None = None
) -> Program:
    program = retype(tuple(inputs), tuple(nodes), tuple(outputs), mode or Mode())
    assert program is not None
    return program


def shrink(program: Program, holds: Callable[[Program], bool]) -> Minimized:
    assert holds(program)
    found = minimize(program, lambda candidates: [holds(candidate) for candidate in candidates])
    assert holds(found.program)
    return found


def ops(program: Program) -> list[str]:
    return [node.op for node in program.nodes]


def shape(kind: Type) -> tuple[int, ...]:
    return kind.shape if isinstance(kind, TensorType) else ()


def has_chain(program: Program, first: str, second: str) -> bool:
    """Whether a statement of `second` uses the value of a statement of `first`."""
    made = {node.name for node in program.nodes if node.op == first}
    return any(node.op == second and made & set(node.args) for node in program.nodes)


TWENTY = typed(
    [given("a", 12, 40), given("b", 12, 40), given("c", 12, 40)],
    [
        let("s0", "relu", "a"),
        let("s1", "mul", "s0", "b"),
        let("s2", "sin", "s1"),
        let("s3", "add", "s2", "c"),
        let("s4", "abs", "s3"),
        let("s5", "tanh", "s4"),
        let("s6", "mul", "s5", "s1"),
        let("s7", "cos", "s6"),
        let("s8", "square", "s7"),
        let("s9", "sum_keepdim", "s8", dim=1),
        let("s10", "add", "s8", "s9"),
        let("s11", "sigmoid", "s10"),
        let("s12", "neg", "s11"),
        let("s13", "amax", "s12", dim=0),
        let("s14", "softmax", "s10", dim=1),
        let("s15", "relu", "s14"),
        let("s16", "mul", "s15", "s4"),
        let("s17", "mean", "s16", dim=1),
        let("s18", "abs", "s17"),
        let("s19", "cumsum", "s18", dim=0),
    ],
    ["s19", "s13", "s12"],
)


@pytest.mark.parametrize(
    ("first", "second"), [("mul", "sin"), ("cos", "square"), ("softmax", "relu"), ("neg", "amax"), ("abs", "cumsum")]
)
def test_chain_in_twenty_statements_shrinks_to_its_two(first: str, second: str) -> None:
    found = shrink(TWENTY, lambda program: has_chain(program, first, second))
    assert ops(found.program) == [first, second]
    assert found.evaluations <= 100


@pytest.mark.parametrize("one", ["relu", "sin", "tanh"])
@pytest.mark.parametrize("other", ["amax", "mean", "cumsum"])
def test_scattered_pairs_are_found_without_what_lies_between(one: str, other: str) -> None:
    found = shrink(TWENTY, lambda program: {one, other} <= set(ops(program)))
    assert sorted(ops(found.program)) == sorted((one, other))


def test_output_beside_a_reduction_over_many_rows_keeps_both_and_just_enough_rows() -> None:
    program = typed(
        [given("x", 8192, 64), given("y", 8192, 64), given("z", 64)],
        [
            let("p", "mul", "x", "y"),
            let("q", "add", "p", "z"),
            let("r", "relu", "q"),
            let("s", "sum_keepdim", "r", dim=0),
            let("t", "cos", "s"),
        ],
        ["q", "r", "t"],
    )

    def holds(program: Program) -> bool:
        return any(
            node.op.startswith("sum")
            and node.args[0] in program.outputs
            and shape(program.types[node.args[0]])[:1] >= (2048,)
            for node in program.nodes
        )

    found = shrink(program, holds).program
    assert ops(found) in (["sum"], ["relu", "sum"])
    assert [spec.type.shape for spec in found.inputs] == [(2048,)]


def test_second_output_moves_to_a_value_that_is_needed_anyway() -> None:
    program = typed(
        [given("x", 2048), given("y", 16, 128), given("z", 128)],
        [
            let("p", "neg", "x"),
            let("q", "mul", "y", "z"),
            let("r", "reshape", "q", shape=(2048,)),
            let("s", "mul", "r", "x"),
            let("t", "sum", "s", dim=0),
        ],
        ["p", "t"],
    )

    def holds(program: Program) -> bool:
        """A sum of a product that has been reshaped, and something else that is returned."""
        makers = {node.name: node for node in program.nodes}
        summed = [makers.get(node.args[0]) for node in program.nodes if node.op == "sum"]
        reshaped = [makers.get(name) for maker in summed if maker and maker.op == "mul" for name in maker.args]
        return len(program.outputs) == 2 and any(maker and maker.op == "reshape" for maker in reshaped)

    assert ops(shrink(program, holds).program) == ["reshape", "mul", "sum"]


def test_split_and_joined_dims_shrink_together() -> None:
    """Sizes that are products of others follow them: 1200 = 4 * 300."""
    program = typed(
        [given("x", 96, 1200), given("p", 300)],
        [
            let("a", "reshape", "x", shape=(96, 4, 300)),
            let("b", "mul", "a", "p"),
            let("c", "reshape", "b", shape=(96, 1200)),
            let("d", "sub", "c", "x"),
            let("e", "abs", "d"),
            let("f", "sum", "e", dim=1),
        ],
        ["f"],
    )
    wanted = ops(program)
    found = shrink(program, lambda small: ops(small) == wanted).program
    assert max(spec.type.numel for spec in found.inputs) <= 4


def test_dim_that_does_not_matter_goes() -> None:
    program = typed(
        [given("x", 3, 5, 7)],
        [let("a", "permute", "x", dims=(2, 0, 1)), let("b", "sum", "a", dim=2), let("c", "relu", "b")],
        ["c"],
    )
    found = shrink(program, lambda small: ops(small) == ["permute", "sum", "relu"]).program
    assert found.inputs[0].type.rank <= 2


def test_details_end_at_their_plainest() -> None:
    spec = InputSpec(
        name="x",
        type=TensorType(shape=(6, 10), dtype=DType.BFLOAT16),
        regime=Regime.SPECIALS,
        layout=Layout(kind=LayoutKind.PERMUTED, dims=(1, 0)),
        seed=99,
    )
    mode = Mode(training=True, dynamic=True, calls=3, config=(("max_autotune", True),))
    program = typed([spec], [let("a", "sum_keepdim", "x", dim=(0, 1))], ["a"], mode)
    found = shrink(program, lambda small: any(op.startswith("sum") for op in ops(small))).program
    assert found.mode == Mode()
    assert ops(found) == ["sum"]
    only = found.inputs[0]
    assert (only.type.dtype, only.layout, only.regime, only.seed) == (F32, Layout(), Regime.NORMAL, 0)


def test_casts_that_do_nothing_in_float32_go_with_the_dtype() -> None:
    spec = InputSpec(name="x", type=TensorType(shape=(6, 10), dtype=DType.FLOAT16))
    program = typed([spec], [let("a", "cast", "x", dtype="float32"), let("b", "sum", "a", dim=1)], ["b"])
    found = shrink(program, lambda small: "sum" in ops(small) and len(shape(small.inputs[0].type)) == 2).program
    assert ops(found) == ["sum"]
    assert found.inputs[0].type.dtype is F32


def test_settings_that_matter_stay() -> None:
    spec = InputSpec(name="x", type=TensorType(shape=(6, 10), dtype=DType.FLOAT16), seed=99)
    mode = Mode(training=True, dynamic=True)
    program = typed([spec], [let("a", "relu", "x"), let("b", "sum", "a", dim=(0, 1))], ["b"], mode)

    def holds(program: Program) -> bool:
        first = program.inputs[0]
        return program.mode.dynamic and first.type.dtype is DType.FLOAT16 and first.type.shape[:1] == (6,)

    found = shrink(program, holds).program
    assert found.mode == Mode(dynamic=True)
    assert found.inputs[0].type == TensorType(shape=(6,), dtype=DType.FLOAT16)


def test_statement_that_only_acts_in_place_is_kept_when_it_matters() -> None:
    program = typed(
        [given("x", 4, 6), given("y", 4, 6)],
        [let("a", "add_", "x", "y"), let("b", "relu", "x"), let("c", "sum", "b", dim=1), let("d", "sin", "y")],
        ["c", "d"],
    )
    found = shrink(program, lambda small: "add_" in ops(small) and "sum" in ops(small)).program
    assert sorted(ops(found)) == ["add_", "sum"]


@pytest.mark.parametrize("index", range(12))
def test_any_statement_of_a_generated_program_can_be_what_is_left(index: int) -> None:
    program = generate(3, index)
    wanted = program.nodes[len(program.nodes) // 2].op
    found = shrink(program, lambda small: wanted in ops(small)).program
    assert wanted in ops(found)
    assert len(found.nodes) <= 3
