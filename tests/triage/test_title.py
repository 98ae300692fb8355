"""Titles say what failed and how."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuzzer.program import DType, InputSpec, Mode, Node, Program, TensorType
from fuzzer.triage import title
from fuzzer.verdict import Kind, Signature, Stage

INT = TensorType(shape=(4, 4), dtype=DType.INT64)


def program(*ops: str) -> Program:
    names = ["x0", *(f"t{position}" for position in range(len(ops)))]
    nodes = tuple(Node(name=names[i + 1], op=op, args=(names[i],), type=INT) for i, op in enumerate(ops))
    return Program(inputs=(InputSpec(name="x0", type=INT),), nodes=nodes, outputs=(names[-1],))


def test_title_names_operators_dtypes_and_what_went_wrong() -> None:
    signature = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE)
    expected = "index, masked_fill and sum of int64: compiled result differs from eager"
    assert title(program("index", "masked_fill", "sum"), signature) == expected


def test_title_names_the_modes_that_were_needed_and_the_origin() -> None:
    signature = Signature(kind=Kind.CODEGEN_ERROR, stage=Stage.INDUCTOR, origin="NameError")
    small = replace(program("sum"), mode=Mode(training=True, dynamic=True))
    assert title(small, signature) == "sum of int64 (training and dynamic shapes): code generation fails (NameError)"


def test_title_of_many_operators_stays_short() -> None:
    signature = Signature(kind=Kind.HANG, stage=Stage.EXECUTE)
    shown = title(program(*"abcdefghij"), signature)
    assert shown == "a, b, c, d, e, f and 4 more of int64: the program does not end"


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_words(kind: Kind) -> None:
    assert title(program("sum"), Signature(kind=kind, stage=Stage.JUDGE)).startswith("sum of int64: ")
