"""A program that raises on one side only, and what a failure on each side means."""

from __future__ import annotations

from dataclasses import dataclass

from fuzzer.observation import Failure, Observations
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

_CODEGEN = frozenset((Stage.DYNAMO, Stage.AOT, Stage.INDUCTOR))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionOracle:
    """PASS when neither eager nor the compiled runs failed; every other verdict is final."""

    name: str = "exceptions"

    def judge(self, observations: Observations) -> Verdict:
        plain, *others = observations.eager
        compiled = next((run for run in observations.compiled if run.failure is not None), None)
        failure = compiled.failure if compiled else None
        if plain.failure is not None:
            if failure is not None:
                return self._say(Outcome.INVALID, _line("eager", plain.failure), _line("compiled", failure))
            origin = f"eager only {plain.failure.origin}"
            return self._bug(Kind.EXCEPTION, Stage.EAGER, origin, _line("eager", plain.failure), "compiled: runs")
        if compiled is None or failure is None:
            return Verdict(outcome=Outcome.PASS, oracle=self.name)
        evidence = (_line(compiled.target, failure), "eager: runs")
        if failure.unsupported:
            return self._say(Outcome.UNSUPPORTED, *evidence)
        for run in others:
            if run.failure is not None and run.failure.origin == failure.origin:
                return self._say(Outcome.INVALID, _line(run.target, run.failure), *evidence)
        return self._bug(_kind(failure), failure.stage, failure.origin, *evidence)

    def _say(self, outcome: Outcome, *evidence: str) -> Verdict:
        return Verdict(outcome=outcome, evidence=evidence, oracle=self.name)

    def _bug(self, kind: Kind, stage: Stage, origin: str, *evidence: str) -> Verdict:
        signature = Signature(kind=kind, stage=stage, origin=origin)
        return Verdict(outcome=Outcome.BUG, signature=signature, evidence=evidence, oracle=self.name)


def _kind(failure: Failure) -> Kind:
    if failure.memory:
        return Kind.MEMORY
    if failure.compile_error:
        return Kind.COMPILE_ERROR
    if failure.stage in _CODEGEN or failure.origin.startswith("generated:"):
        return Kind.CODEGEN_ERROR
    return Kind.EXCEPTION


def _line(where: str, failure: Failure) -> str:
    return f"{where}: {failure.message} [{failure.origin}, {failure.stage}]"
