"""What goes through the pipes comes out as it went in."""

from __future__ import annotations

import json

import pytest

from fuzzer.campaign.protocol import (
    Generate,
    Job,
    Reply,
    RunCase,
    Settings,
    decode_job,
    decode_reply,
    decode_settings,
    encode,
)
from fuzzer.program import Case, Mode
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

CASE = Case(source="x = 'ü\n'", mode=Mode(training=True, calls=2, config=(("max_autotune", True), ("name", "x"))))


@pytest.mark.parametrize(
    "job",
    [
        RunCase(case=CASE, keep_kernels=True),
        Generate(seed=3, index=5),
        Generate(seed=3, index=5, families=("masking",), config=(("max_autotune", True),)),
    ],
)
def test_a_job_survives_the_pipe(job: Job) -> None:
    assert decode_job(json.loads(encode(job))) == job


def test_a_reply_survives_the_pipe() -> None:
    verdict = Verdict(
        outcome=Outcome.BUG,
        signature=Signature(kind=Kind.CRASH, stage=Stage.HIVM, origin="SIGSEGV"),
        evidence=("one", "two"),
        oracle="process",
        seconds=(("eager", 0.25),),
    )
    reply = Reply(verdict=verdict, case=CASE, kernels=(("k", "def k(): ..."),), output="said", seconds=1.5, peak=7)
    decoded = decode_reply(json.loads(encode(reply)))
    assert decoded == reply
    assert decoded.verdict.seconds == verdict.seconds


def test_settings_survive_the_command_line() -> None:
    settings = Settings(target="npu", backend="default", reintroduce=("a", "b"), fix=("c",), timeout=3.0, memory=5)
    assert decode_settings(json.loads(encode(settings))) == settings


def test_the_released_settings_bring_nothing_back_and_change_nothing_else() -> None:
    settings = Settings(target="npu", backend="default", reintroduce=("a",), fix=("c",), timeout=3.0, memory=5)
    assert settings.released == Settings(target="npu", backend="default", fix=("c",), timeout=3.0, memory=5)


@pytest.mark.parametrize("limits", [{"timeout": 0.0}, {"timeout": -1.0}])
def test_a_limit_that_is_not_positive_cannot_be_built(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="time limit is positive"):
        Settings(**limits)  # type: ignore[arg-type]  # only floats
