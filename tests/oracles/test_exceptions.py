"""What a failure on one side, or on both, means."""

from __future__ import annotations

import pytest
import torch

from fuzzer.oracles import judge, settled
from fuzzer.verdict import Kind, Outcome, Signature, Stage
from tests.oracles.observing import failing, run, seen

REFERENCE = run("reference", torch.ones(2).double())
EAGER = run("eager", torch.ones(2))


def test_a_program_that_fails_on_both_sides_is_invalid() -> None:
    observations = seen(REFERENCE, failing("eager", stage=Stage.EAGER), failing("compiled"))
    assert judge(observations).outcome is Outcome.INVALID
    assert settled(observations)


def test_a_program_that_only_eager_refuses_is_a_bug() -> None:
    verdict = judge(
        seen(REFERENCE, failing("eager", stage=Stage.EAGER, origin="IndexError"), run("compiled", torch.ones(2)))
    )
    assert verdict.signature == Signature(kind=Kind.EXCEPTION, stage=Stage.EAGER, origin="eager only IndexError")


@pytest.mark.parametrize(
    ("stage", "origin", "compile_error", "kind"),
    [
        (Stage.INDUCTOR, "AssertionError:prepare_indexing", False, Kind.CODEGEN_ERROR),
        (Stage.DYNAMO, "InternalTorchDynamoError:step", False, Kind.CODEGEN_ERROR),
        (Stage.LAUNCH, "generated:NameError rN_Nnumel", False, Kind.CODEGEN_ERROR),
        (Stage.FRONTEND, "CompilationError:visit_Name", True, Kind.COMPILE_ERROR),
        (Stage.HIVM, "bishengir-compile: ub overflow", True, Kind.COMPILE_ERROR),
        (Stage.LAUNCH, "RuntimeError:launcher", False, Kind.EXCEPTION),
    ],
)
def test_a_failure_of_the_compiled_run_is_a_bug_of_its_stage(
    stage: Stage, origin: str, compile_error: bool, kind: Kind
) -> None:
    verdict = judge(
        seen(REFERENCE, EAGER, failing("compiled", stage=stage, origin=origin, compile_error=compile_error))
    )
    assert verdict.signature == Signature(kind=kind, stage=stage, origin=origin)
    assert verdict.oracle == "exceptions"


def test_an_access_outside_an_argument_is_a_memory_bug() -> None:
    verdict = judge(
        seen(REFERENCE, EAGER, failing("compiled", stage=Stage.EXECUTE, origin="out-of-bounds", memory=True))
    )
    assert verdict.signature == Signature(kind=Kind.MEMORY, stage=Stage.EXECUTE, origin="out-of-bounds")


def test_a_clear_refusal_is_unsupported() -> None:
    assert judge(seen(REFERENCE, EAGER, failing("compiled", unsupported=True))).outcome is Outcome.UNSUPPORTED


def test_what_eager_on_the_device_refuses_in_the_same_way_is_invalid() -> None:
    origin = "RuntimeError:index_put"
    on_device = failing("eager on npu", stage=Stage.EAGER, origin=origin)
    observations = seen(REFERENCE, EAGER, failing("compiled", stage=Stage.EXECUTE, origin=origin), on_device)
    assert judge(observations).outcome is Outcome.INVALID


def test_a_failure_of_the_reference_alone_does_not_matter() -> None:
    assert judge(seen(failing("reference"), EAGER, run("compiled", torch.ones(2)))).outcome is Outcome.PASS


def test_a_failure_of_eager_on_the_device_alone_does_not_matter() -> None:
    observations = seen(REFERENCE, EAGER, run("compiled", torch.ones(2)), failing("eager on npu", stage=Stage.EAGER))
    assert judge(observations).outcome is Outcome.PASS
