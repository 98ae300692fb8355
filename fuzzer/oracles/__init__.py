"""From what was seen of one program to a verdict.

`ORACLES` are asked in order; the first BUG decides, and a failed run ends the questions.
"""

from __future__ import annotations

from fuzzer.observation import Observations
from fuzzer.oracles.exceptions import ExceptionOracle
from fuzzer.oracles.metadata import LayoutOracle, ShapeOracle
from fuzzer.oracles.protocol import Oracle, gravest
from fuzzer.oracles.values import ValueOracle, gradients, inputs, outputs
from fuzzer.verdict import Kind, Outcome, Verdict

EXCEPTIONS: Oracle = ExceptionOracle()

ORACLES: tuple[Oracle, ...] = (
    ShapeOracle(),
    ValueOracle(name="mutation", kind=Kind.MUTATION, origin="input", pick=inputs),
    ValueOracle(name="numerics", kind=Kind.WRONG_RESULT, origin="output", pick=outputs),
    ValueOracle(name="gradients", kind=Kind.GRADIENT, origin="gradient", pick=gradients),
    LayoutOracle(),
)
"""What is asked of a program that ran everywhere."""


def judge(observations: Observations) -> Verdict:
    """The verdict on one program. Deterministic; raises only for a fault of the fuzzer itself."""
    first = EXCEPTIONS.judge(observations)
    if first.outcome is not Outcome.PASS:
        return first
    verdicts: list[Verdict] = []
    for oracle in ORACLES:
        verdict = oracle.judge(observations)
        if verdict.outcome is Outcome.BUG:
            return verdict
        verdicts.append(verdict)
    return gravest(verdicts)


def settled(observations: Observations) -> bool:
    """Whether more eager runs could not change the verdict: what `fuzzer.targets` asks before it makes them."""
    return judge(observations).outcome not in (Outcome.BUG, Outcome.INCONCLUSIVE)
