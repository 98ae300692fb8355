"""What can be said of a program after it ran everywhere, and the identity of what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzzer.backports import StrEnum


class Outcome(StrEnum):
    """The conclusion about one program."""

    PASS = "PASS"
    BUG = "BUG"
    INCONCLUSIVE = "INCONCLUSIVE"
    """Ill-conditioned: the reference itself is not known well enough."""
    EXCUSED = "EXCUSED"
    """A discrete decision fell on a near-tie."""
    RUN_FLAKY = "RUN-FLAKY"
    """The same compiled program gives different results from run to run."""
    COMPILE_FLAKY = "COMPILE-FLAKY"
    """Compiling again gives another result."""
    UNSUPPORTED = "UNSUPPORTED"
    """A clear refusal, by the product or by the simulator."""
    INVALID = "INVALID"
    """Eager refuses the program too."""
    LOST = "LOST"
    """The worker died before anything could be said."""


class Kind(StrEnum):
    """What kind of defect a BUG is."""

    WRONG_RESULT = "wrong-result"
    GRADIENT = "gradient"
    MUTATION = "mutation"
    METADATA = "metadata"
    CODEGEN_ERROR = "codegen-error"
    """Python code generation raised, or generated Python that does not run."""
    COMPILE_ERROR = "compile-error"
    """The Triton frontend, the adapter or the HIVM pipeline refused a generated kernel."""
    CRASH = "crash"
    HANG = "hang"
    MEMORY = "memory"
    RACE = "race"
    CONFIGURATION = "configuration"
    EXCEPTION = "exception"
    """An exception on one side only that is none of the above (eager raises, compiled does not)."""


class Stage(StrEnum):
    """Where in the chain from PyTorch to the device something happened."""

    REFERENCE = "reference"
    EAGER = "eager"
    DYNAMO = "dynamo"
    AOT = "aot"
    INDUCTOR = "inductor"
    """Lowering, scheduling, Python code generation."""
    FRONTEND = "frontend"
    """Triton frontend and TTIR passes."""
    ADAPTER = "adapter"
    """triton-adapter-opt."""
    HIVM = "hivm"
    """bishengir-compile."""
    LAUNCH = "launch"
    EXECUTE = "execute"
    JUDGE = "judge"
    """Everything ran; the results differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A defect's identity: enums and normalised names only, nothing that the minimizer changes."""

    kind: Kind
    stage: Stage
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.kind} at {self.stage}" + (f" ({self.origin})" if self.origin else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A conclusion about one program, and the evidence for it."""

    outcome: Outcome
    signature: Signature | None = None
    """Set exactly for a BUG."""
    evidence: tuple[str, ...] = ()
    """Lines for people: values, positions, bounds, the exception's message."""
    oracle: str = ""
    """Name of the oracle that decided."""
    seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """Seconds by stage: generate, eager, inductor, frontend, adapter, hivm, lower, jit, execute, judge."""

    def __post_init__(self) -> None:
        if (self.signature is not None) != (self.outcome is Outcome.BUG):
            raise ValueError(f"{self.outcome} with signature {self.signature}: a BUG has one, nothing else has")
