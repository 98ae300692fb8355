"""Buckets join findings of one defect and keep others apart."""

from __future__ import annotations

from dataclasses import replace

from fuzzer.program import DType, InputSpec, Mode, Node, Program, TensorType
from fuzzer.triage import bucket, same
from fuzzer.triage.bucket import operators
from fuzzer.verdict import Kind, Signature, Stage

WRONG = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE)


def tensor(*shape: int, dtype: DType = DType.FLOAT32) -> TensorType:
    return TensorType(shape=shape, dtype=dtype)


def chain(*ops: str, rows: int = 4, stem: str = "t") -> Program:
    """A program whose statements each work on the one before."""
    names = ["x0", *(f"{stem}{position}" for position in range(len(ops)))]
    nodes = tuple(
        Node(name=names[position + 1], op=op, args=(names[position],), type=tensor(rows))
        for position, op in enumerate(ops)
    )
    return Program(inputs=(InputSpec(name="x0", type=tensor(rows)),), nodes=nodes, outputs=(names[-1],))


def two_outputs(*, swapped: bool) -> Program:
    first = Node(name="a", op="relu", args=("x0",), type=tensor(4))
    second = Node(name="b", op="sum", args=("x0",), type=tensor())
    nodes = (second, first) if swapped else (first, second)
    return Program(
        inputs=(InputSpec(name="x0", type=tensor(4)),), nodes=nodes, outputs=tuple(node.name for node in nodes)
    )


def test_slug_names_the_kind_and_the_operators_in_def_use_order() -> None:
    assert bucket(chain("index", "masked_fill", "sum"), WRONG).slug == "wrong-result-index-masked_fill-sum"


def test_shapes_and_names_do_not_matter() -> None:
    assert bucket(chain("relu", "sum"), WRONG) == bucket(chain("relu", "sum", rows=9, stem="other"), WRONG)


def test_dims_in_operator_names_do_not_matter() -> None:
    assert bucket(chain("index_0", "sum"), WRONG) == bucket(chain("index_12", "sum"), WRONG)
    assert bucket(chain("index_0", "add_"), WRONG).slug == "wrong-result-index-add_"


def test_order_of_statements_and_outputs_does_not_matter() -> None:
    assert bucket(two_outputs(swapped=False), WRONG) == bucket(two_outputs(swapped=True), WRONG)


def test_operators_their_order_and_the_signature_matter() -> None:
    crash = Signature(kind=Kind.CRASH, stage=Stage.EXECUTE)
    origin = replace(WRONG, origin="NameError in call")
    findings = [
        bucket(chain("relu", "sum"), WRONG),
        bucket(chain("sum", "relu"), WRONG),
        bucket(chain("relu", "sum"), crash),
        bucket(chain("relu", "sum"), origin),
        bucket(replace(chain("relu", "sum"), mode=Mode(dynamic=True)), WRONG),
        bucket(replace(chain("relu", "sum"), mode=Mode(training=True)), WRONG),
    ]
    assert len({finding.id for finding in findings}) == len(findings)


def test_statement_that_acts_in_place_and_is_not_used_counts() -> None:
    program = chain("relu", "sum")
    acting = replace(program, nodes=(*program.nodes, Node(name="z", op="add_", args=("x0",), type=tensor(4))))
    assert bucket(acting, WRONG).id != bucket(program, WRONG).id
    assert set(operators(acting)) == {"relu", "sum", "add_"}


def test_deep_sharing_is_handled_in_linear_time() -> None:
    nodes = [Node(name="t0", op="add", args=("x0", "x0"), type=tensor(4))]
    for position in range(1, 200):
        before = f"t{position - 1}"
        nodes.append(Node(name=f"t{position}", op="add", args=(before, before), type=tensor(4)))
    program = Program(inputs=(InputSpec(name="x0", type=tensor(4)),), nodes=tuple(nodes), outputs=("t199",))
    assert bucket(program, WRONG).slug == "wrong-result-add"


def test_same_needs_kind_stage_and_origin() -> None:
    assert same(WRONG, replace(WRONG))
    assert not same(WRONG, replace(WRONG, kind=Kind.GRADIENT))
    assert not same(WRONG, replace(WRONG, stage=Stage.EXECUTE))
    assert not same(WRONG, replace(WRONG, origin="AssertionError in lower"))


def test_identity_is_stable_across_versions_of_the_fuzzer() -> None:
    """Filed entries keep their ids: a change of this literal orphans every bucket there is."""
    assert bucket(chain("relu", "sum"), WRONG).id == "wrong-result-relu-sum-2e2ec4ea"
