"""Inputs are copied with their layout, and everything that can be seen of a run is collected."""

from __future__ import annotations

import pytest
import torch

from fuzzer.observation import Observation
from fuzzer.program import Case, FuzzerError
from fuzzer.targets.harness import copy_inputs, cotangent, load, run_once
from fuzzer.targets.reference import widen
from fuzzer.verdict import Stage

BASE = torch.arange(60.0)
LAYOUTS = {
    "contiguous": BASE.reshape(5, 12),
    "permuted": BASE.reshape(3, 4, 5).permute(2, 0, 1),
    "strided": BASE[7:].as_strided((3, 4), (12, 2), 9),
    "expanded": torch.arange(4.0).reshape(4, 1).expand(4, 6),
    "scalar": torch.tensor(3.0),
    "empty": torch.empty((0, 3)),
}


def observe(source: str, *, training: bool = False) -> Observation:
    loaded = load(Case(source=source))
    inputs = copy_inputs(loaded.inputs, training=training)
    return run_once(
        loaded.function,
        inputs,
        loaded.names,
        target="eager",
        stage=Stage.EAGER,
        training=training,
        breadcrumb=lambda stage, step: None,
    )


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("rewrite", [None, widen], ids=["as-is", "float64"])
def test_a_copy_has_the_layout_of_the_original(name: str, rewrite: None) -> None:
    original = LAYOUTS[name]
    (copy,) = copy_inputs([original], rewrite=rewrite)
    assert isinstance(copy, torch.Tensor)
    assert (copy.shape, copy.stride()) == (original.shape, original.stride())
    assert copy.storage_offset() == original.storage_offset()
    assert torch.equal(copy.to(original.dtype), original)
    assert copy.dtype is (torch.float64 if rewrite else torch.float32)
    assert not copy._is_view()
    if original.numel():
        assert copy.untyped_storage().data_ptr() != original.untyped_storage().data_ptr()


def test_inputs_that_share_memory_still_do_in_the_copy() -> None:
    x = torch.zeros(10)
    one, other = copy_inputs([x[:6], x[4:]])
    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    one[5] = 7
    assert other[1] == 7
    assert x.sum() == 0


def test_in_training_floating_inputs_are_leaves_and_others_are_left_alone() -> None:
    x, index, number = copy_inputs([torch.ones(3), torch.arange(3), 4], training=True)
    assert isinstance(x, torch.Tensor)
    assert x.is_leaf
    assert x.requires_grad
    assert isinstance(index, torch.Tensor)
    assert not index.requires_grad
    assert number == 4


def test_cotangents_are_small_uneven_integers_and_the_same_for_equal_shapes() -> None:
    one = cotangent(torch.zeros(8, 9))
    assert torch.equal(one, cotangent(torch.ones(8, 9)))
    assert torch.equal(one, one.round())
    assert one.abs().max() <= 5
    assert len({tuple(row) for row in one.tolist()}) > 1
    assert len({tuple(column) for column in one.t().tolist()}) > 1


TELLING = """
def inputs():
    import torch
    return torch.ones(2, 3), torch.arange(3)

def program(x, index):
    x.mul_(2)
    return {"y": x.t(), "n": x.sum().item(), "z": (x + 1, None, True)}, index
"""


def test_everything_that_a_program_returns_or_changes_is_collected() -> None:
    seen = observe(TELLING)
    assert seen.failure is None
    assert [leaf.path for leaf in seen.inputs] == ["input[x]", "input[index]"]
    assert torch.equal(seen.inputs[0].value, torch.full((2, 3), 2.0))
    leaves = {leaf.path: leaf for leaf in seen.outputs}
    assert [leaf.is_number for leaf in seen.outputs].count(True) == 2
    assert [leaf.alias for leaf in seen.outputs].count("input[x]") == 1
    assert [leaf.alias for leaf in seen.outputs].count("input[index]") == 1
    transposed = next(leaf for leaf in leaves.values() if leaf.alias == "input[x]")
    assert transposed.stride == (1, 3)
    assert tuple(transposed.value.shape) == (3, 2)


TRAINED = """
import torch

def inputs():
    return torch.arange(6.0).reshape(2, 3), torch.ones(3), torch.ones(4)

def program(x, y, unused):
    return x * y, (x > 2)
"""


def test_gradients_are_those_of_the_fixed_cotangents_and_zeros_for_unused_inputs() -> None:
    x, y, unused = observe(TRAINED, training=True).gradients
    weights = cotangent(torch.zeros(2, 3))
    assert torch.equal(x.value, weights)
    assert torch.equal(y.value, (weights * torch.arange(6.0).reshape(2, 3)).sum(0))
    assert unused.value.tolist() == [0, 0, 0, 0]


def test_an_exception_of_the_program_is_a_value() -> None:
    failure = observe("def inputs():\n    return 1\ndef program(x):\n    return [][x]\n").failure
    assert failure is not None
    assert (failure.stage, failure.origin) == (Stage.EAGER, "IndexError")
    assert "list index out of range" in failure.message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def program(:", "does not run"),
        ("def program(x):\n    return x", "defines no inputs()"),
        ("def inputs():\n    return 1", "defines no program()"),
        ("def inputs():\n    1 / 0\ndef program(x): ...", "inputs() fails: ZeroDivisionError"),
        ("def inputs():\n    return 'a'\ndef program(x): ...", "inputs() returns a str"),
        ("def inputs():\n    return 1, 2\ndef program(x): ...", "inputs() returns 2 values, but program(x)"),
    ],
)
def test_text_that_is_no_program_is_refused_in_one_line(source: str, words: str) -> None:
    with pytest.raises(FuzzerError) as refused:
        load(Case(source=source))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_result_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(FuzzerError, match="returns a str"):
        observe("def inputs():\n    return 1\ndef program(x):\n    return 'text'\n")
