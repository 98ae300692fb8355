"""A child's end is turned into the right verdict."""

from __future__ import annotations

import json

import pytest

from fuzzer.campaign.postmortem import Cause, End, explain, with_faults, with_opinion
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

FAULT = {
    "event": "fault",
    "signal": "SIGSEGV",
    "address": "0x1",
    "kernel": "triton_0",
    "allocation": "0x10",
    "size": 64,
}
LIVE = json.dumps({**FAULT, "distance": 4, "state": "live"})
FREED = json.dumps({**FAULT, "distance": 0, "state": "freed"})
OVERWRITE = json.dumps({**FAULT, "event": "overwrite", "distance": -8, "state": "live"})
BARE = json.dumps({"event": "fault", "signal": "SIGFPE", "address": "", "kernel": "triton_0"})

EAGER = ((Stage.EAGER, "plain"), (Stage.REFERENCE, ""))
COMPILING = (*EAGER, (Stage.INDUCTOR, "forward"))
EXECUTING = (*COMPILING, (Stage.EXECUTE, "launch triton_0"))


def died(*crumbs: tuple[Stage, str], cause: Cause = Cause.SIGNAL, status: int = 11, **more: object) -> End:
    return End(cause=cause, status=status, crumbs=crumbs, **more)  # type: ignore[arg-type]  # only test data


def signature(verdict: Verdict) -> tuple[Kind, Stage, str]:
    assert verdict.outcome is Outcome.BUG
    assert verdict.signature is not None
    return verdict.signature.kind, verdict.signature.stage, verdict.signature.origin


def test_death_in_the_compiled_run_is_a_crash_at_the_last_step() -> None:
    assert signature(explain(died(*EXECUTING))) == (Kind.CRASH, Stage.EXECUTE, "SIGSEGV")
    assert signature(explain(died(*COMPILING, cause=Cause.EXIT, status=3))) == (Kind.CRASH, Stage.INDUCTOR, "exit-3")
    assert signature(explain(died(*COMPILING, cause=Cause.MEMORY))) == (Kind.CRASH, Stage.INDUCTOR, "memory-limit")


@pytest.mark.parametrize("cause", Cause)
def test_death_before_the_compiled_run_says_nothing_about_the_compiler(cause: Cause) -> None:
    assert explain(died(*EAGER, cause=cause)).outcome is Outcome.LOST
    assert explain(died(cause=cause)).outcome is Outcome.LOST


def test_death_after_the_compiled_run_is_the_compiled_runs_crash() -> None:
    after = (*EXECUTING, (Stage.EAGER, "perturbed"))
    assert signature(explain(died(*after, status=6))) == (Kind.CRASH, Stage.EXECUTE, "SIGABRT")
    assert signature(explain(died(*EXECUTING, (Stage.JUDGE, "")))) == (Kind.CRASH, Stage.EXECUTE, "SIGSEGV")


def test_a_timeout_is_a_hang_only_in_the_compiled_run() -> None:
    assert signature(explain(died(*COMPILING, cause=Cause.TIMEOUT))) == (Kind.HANG, Stage.INDUCTOR, "timeout")
    assert explain(died(*EXECUTING, (Stage.EAGER, "perturbed"), cause=Cause.TIMEOUT)).outcome is Outcome.LOST
    assert explain(died(*EXECUTING, (Stage.JUDGE, ""), cause=Cause.TIMEOUT)).outcome is Outcome.LOST


def test_a_named_memory_fault_identifies_the_defect_without_sizes_or_names() -> None:
    out_of_bounds = (Kind.MEMORY, Stage.EXECUTE, "out-of-bounds")
    assert signature(explain(died(*EXECUTING, faults=(LIVE,)))) == out_of_bounds
    assert signature(explain(died(*EXECUTING, faults=(OVERWRITE,)))) == out_of_bounds
    assert signature(explain(died(*EXECUTING, faults=(FREED,)))) == (Kind.MEMORY, Stage.EXECUTE, "use-after-free")
    assert signature(explain(died(*EXECUTING, faults=(LIVE[:20], OVERWRITE)))) == out_of_bounds


def test_a_signal_without_an_allocation_stays_a_crash() -> None:
    assert signature(explain(died(*EXECUTING, status=8, faults=(BARE,)))) == (Kind.CRASH, Stage.EXECUTE, "SIGFPE")


def test_overwritten_memory_outweighs_the_verdict_that_followed_from_it() -> None:
    wrong = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE, origin="output")
    verdict = Verdict(outcome=Outcome.BUG, signature=wrong, evidence=("output[0] is wrong",))
    end = died(*EXECUTING, cause=Cause.EXIT, status=0, faults=(OVERWRITE,))
    combined = with_faults(verdict, end)
    assert signature(combined) == (Kind.MEMORY, Stage.EXECUTE, "out-of-bounds")
    assert "8 byte(s) before the start of a live device allocation of 64 bytes" in combined.evidence[0]
    assert combined.evidence[-1] == "output[0] is wrong"
    assert signature(with_faults(Verdict(outcome=Outcome.PASS), end))[0] is Kind.MEMORY


def test_a_verdict_without_faults_stays_as_it_is() -> None:
    verdict = Verdict(outcome=Outcome.PASS)
    assert with_faults(verdict, died(*EXECUTING, cause=Cause.EXIT, status=0)) is verdict
    refused = Verdict(outcome=Outcome.INVALID)
    assert with_faults(refused, died(*EXECUTING, faults=(OVERWRITE,))) is refused


ACCESS = "triton_0 reads in_ptr0[8], which has 8 elements, in program (0, 0, 0) at line 28: tl.load(in_ptr0 + (x0))"
OUTSIDE = Verdict(
    outcome=Outcome.BUG,
    signature=Signature(kind=Kind.MEMORY, stage=Stage.EXECUTE, origin="out-of-bounds"),
    evidence=(f"compiled on sim: KernelMemoryError: {ACCESS} [out-of-bounds, execute]", "eager: runs"),
)
WRONG = Verdict(outcome=Outcome.BUG, signature=Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE))
IN_BOUNDS = "every access of the Triton source is in bounds: the compilers made this one"


@pytest.mark.parametrize(
    ("interpreted", "said"),
    [
        (OUTSIDE, ACCESS),
        (Verdict(outcome=Outcome.PASS), IN_BOUNDS),
        (WRONG, IN_BOUNDS),
        (Verdict(outcome=Outcome.UNSUPPORTED), "cannot tell: UNSUPPORTED"),
        (explain(died(*COMPILING, cause=Cause.TIMEOUT)), "cannot tell: BUG hang at inductor (timeout)"),
        (None, "did not run"),
    ],
)
def test_the_interpreters_opinion_is_one_line_of_evidence_and_no_more(interpreted: Verdict | None, said: str) -> None:
    fault = explain(died(*EXECUTING, faults=(LIVE,), output="Fatal Python error"))
    told = with_opinion(fault, interpreted)
    assert told.signature == fault.signature
    assert told.evidence == (*fault.evidence[:-2], f"interpreter: {said}", *fault.evidence[-2:])


def test_evidence_tells_the_step_the_fault_and_what_was_printed() -> None:
    end = died(*EXECUTING, faults=(LIVE, BARE), output="Fatal Python error\n\nExtension modules: a, b\n")
    assert explain(end).evidence == (
        "the process died of SIGSEGV",
        "last step begun: execute, launch triton_0",
        "fault in kernel triton_0: 4 byte(s) past the end of a live device allocation of 64 bytes",
        "it printed:",
        "  Fatal Python error",
    )
