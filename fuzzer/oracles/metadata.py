"""What is promised of results besides their values: number of them, dtype, shape, strides, aliasing, requires_grad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzzer.observation import Leaf, Observation, Observations
from fuzzer.oracles.protocol import by_path, completed, gravest
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOracle:
    """How many values, of which dtype and shape, tensor or number: without it values cannot be compared."""

    name: str = "metadata"

    def judge(self, observations: Observations) -> Verdict:
        eager = completed(observations)
        verdicts: list[Verdict] = []
        for compiled in observations.compiled:
            count, expected = len(compiled.outputs), len(eager[0].outputs)
            if count != expected:
                verdicts.append(_bug("structure", f"{compiled.target} returns {count} values, eager {expected}"))
            else:
                verdicts += [self._judge_leaf(leaf, known) for leaf, known in _pairs(compiled, eager)]
        return gravest(verdicts)

    def _judge_leaf(self, leaf: Leaf, known: Sequence[Leaf]) -> Verdict:
        plain, shape = known[0], tuple(leaf.value.shape)
        if leaf.is_number != plain.is_number:
            return _bug("number", f"{leaf.path}: {_sort(leaf)}, in eager {_sort(plain)}")
        if leaf.value.dtype != plain.value.dtype:
            return _bug("dtype", f"{leaf.path}: dtype is {leaf.value.dtype}, in eager {plain.value.dtype}")
        if leaf.value.shape != plain.value.shape:
            line = f"{leaf.path}: shape is {shape}, in eager {tuple(plain.value.shape)}"
            if leaf.value.shape not in [other.value.shape for other in known]:
                return _bug("shape", line)
            return Verdict(outcome=Outcome.EXCUSED, evidence=(line, "in another eager run too"), oracle=self.name)
        return Verdict(outcome=Outcome.PASS, oracle=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOracle:
    """Strides where eager promises them, which leaves share memory, and requires_grad."""

    name: str = "layout"

    def judge(self, observations: Observations) -> Verdict:
        eager = completed(observations)
        return gravest(
            [
                self._judge_leaf(leaf, known)
                for compiled in observations.compiled
                for leaf, known in _pairs(compiled, eager)
                if leaf.value.shape == known[0].value.shape
            ]
        )

    def _judge_leaf(self, leaf: Leaf, known: Sequence[Leaf]) -> Verdict:
        plain = known[0]
        if leaf.requires_grad != plain.requires_grad:
            line = f"{leaf.path}: requires_grad is {leaf.requires_grad}, in eager {plain.requires_grad}"
            return _bug("requires_grad", line)
        if leaf.alias not in [other.alias for other in known]:
            line = f"{leaf.path}: shares memory with {leaf.alias or 'nothing'}, eager: {plain.alias or 'nothing'}"
            return _bug("alias", line)
        if leaf.value.numel() and _is_dense(plain) and _telling(leaf) not in [_telling(other) for other in known]:
            return _bug("stride", f"{leaf.path}: strides are {leaf.stride}, in eager {plain.stride}")
        return Verdict(outcome=Outcome.PASS, oracle=self.name)


def _pairs(compiled: Observation, eager: Sequence[Observation]) -> Iterator[tuple[Leaf, list[Leaf]]]:
    """Each leaf of a compiled run, and the same leaf of every eager run that has it, the plain one first."""
    everywhere = [by_path((*run.inputs, *run.outputs)) for run in eager]
    for leaf in (*compiled.inputs, *compiled.outputs):
        if leaf.path in everywhere[0]:
            yield leaf, [leaves[leaf.path] for leaves in everywhere if leaf.path in leaves]


def _bug(origin: str, line: str) -> Verdict:
    signature = Signature(kind=Kind.METADATA, stage=Stage.JUDGE, origin=origin)
    return Verdict(outcome=Outcome.BUG, signature=signature, evidence=(line,), oracle="metadata")


def _sort(leaf: Leaf) -> str:
    return "a Python number" if leaf.is_number else "a tensor"


def _telling(leaf: Leaf) -> tuple[int, ...]:
    """Strides of the dims where they matter."""
    return tuple(stride for size, stride in zip(leaf.value.shape, leaf.stride, strict=True) if size > 1)


def _is_dense(leaf: Leaf) -> bool:
    """Non-overlapping and dense: only then does eager promise an order of strides."""
    dims = sorted((stride, size) for size, stride in zip(leaf.value.shape, leaf.stride, strict=True) if size > 1)
    expected = 1
    for stride, size in dims:
        if stride != expected:
            return False
        expected *= size
    return True
