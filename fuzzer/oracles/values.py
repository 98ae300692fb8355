"""Compares all leaves of one sort: outputs, inputs after the run, or gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuzzer.observation import Leaf, Observation, Observations
from fuzzer.oracles.closeness import Closeness, compare
from fuzzer.oracles.protocol import by_path, completed, gravest
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOracle:
    """Every leaf that `pick` takes from an observation must be close to eager's and float64's."""

    name: str
    kind: Kind
    origin: str
    """Of a finite value that is wrong; one that should be finite, or should not, is `non-finite`."""
    pick: Callable[[Observation], Sequence[Leaf]]

    def judge(self, observations: Observations) -> Verdict:
        """Of several calls of the compiled function each is judged."""
        eager = completed(observations)
        reference = {} if observations.reference.failure else by_path(self.pick(observations.reference))
        known = [by_path(self.pick(run)) for run in eager]
        verdicts: list[Verdict] = []
        for run in observations.compiled:
            found = by_path(self.pick(run))
            for path in known[0]:
                leaf = found.get(path)
                if leaf is None:
                    verdicts.append(self._bug("missing", (f"{path}: {run.target} has none",)))
                    continue
                others = [leaves[path] for leaves in known if path in leaves]
                verdicts.append(self._judge_leaf(leaf, others, reference.get(path), exact=observations.exact))
        return gravest(verdicts)

    def _judge_leaf(self, leaf: Leaf, eager: Sequence[Leaf], reference: Leaf | None, *, exact: bool) -> Verdict:
        plain = eager[0].value
        if leaf.value.dtype != plain.dtype:
            return self._bug("dtype", (f"{leaf.path}: dtype is {leaf.value.dtype}, in eager {plain.dtype}",))
        if leaf.value.shape != plain.shape:
            # Of outputs and inputs the metadata oracle has its say before; a gradient has its input's shape.
            return Verdict(outcome=Outcome.EXCUSED, evidence=(f"{leaf.path}: another shape",), oracle=self.name)
        found: Closeness = compare(leaf, eager, reference, exact=exact)
        if found.outcome is Outcome.BUG:
            return self._bug("non-finite" if found.origin == "non-finite" else self.origin, found.evidence)
        return Verdict(outcome=found.outcome, evidence=found.evidence, oracle=self.name)

    def _bug(self, origin: str, evidence: tuple[str, ...]) -> Verdict:
        signature = Signature(kind=self.kind, stage=Stage.JUDGE, origin=origin)
        return Verdict(outcome=Outcome.BUG, signature=signature, evidence=evidence, oracle=self.name)


def outputs(run: Observation) -> Sequence[Leaf]:
    return run.outputs


def inputs(run: Observation) -> Sequence[Leaf]:
    return run.inputs


def gradients(run: Observation) -> Sequence[Leaf]:
    return run.gradients
