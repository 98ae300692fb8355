"""A campaign is told in three forms: live on a terminal, as lines elsewhere, as JSON for programs."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from fuzzer.events import Event, Filed, Finding, Ran, Started, State, Summary, Tick
from fuzzer.report.terminal import Display
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

FINDING = Finding(
    bucket="crash-sum-1",
    title="sum of bool[3]: the process dies",
    signature=Signature(kind=Kind.CRASH, stage=Stage.EXECUTE, origin="SIGSEGV"),
    state=State.VERIFIED,
    entry="out/corpus/crash-sum-1.py",
    first_program=4,
    first_seen=75.0,
    statements=1,
    evaluations=30,
    catches=("downcast_inout",),
)
OUTCOMES = {Outcome.PASS: 7, Outcome.BUG: 1, Outcome.EXCUSED: 2}
EVENTS: tuple[Event, ...] = (
    Started(
        target="sim",
        backend="default",
        seed=3,
        workers=2,
        folder="out",
        versions=(("torch", "2.13.0"),),
        behind=0,
    ),
    Tick(
        seconds=5.0,
        limit=600.0,
        programs=10,
        programs_limit=None,
        outcomes=OUTCOMES,
        rate=2.0,
        running=2,
        workers=2,
        ready=True,
        doing="shrinking",
    ),
    Ran(number=4, verdict=Verdict(outcome=Outcome.PASS), seconds=0.5),
    Filed(finding=FINDING, seconds=20.0),
    Summary(
        programs=10,
        seconds=5.0,
        rate=2.0,
        outcomes=OUTCOMES,
        stages={"inductor": 3.0, "eager": 1.0},
        findings=(FINDING,),
        waiting=2,
        repeated=1,
        interrupted=False,
        folder="out",
    ),
)


def told(*, terminal: bool = False, as_json: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100, color_system=None)
    with Display(console, as_json=as_json) as display:
        for event in EVENTS:
            display(event)
    return file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_the_summary_holds_every_figure(terminal: bool) -> None:
    text = told(terminal=terminal)
    for part in (
        "fuzzing target sim default (torch 2.13.0), seed 3, 2 worker(s), state in out",
        "found sum of bool[3]: the process dies (catches downcast_inout): 1 statement(s), out/corpus/crash-sum-1.py",
        "10 in 5 s, 2.00 programs per second",
        "7 (70.0%)",
        "INCONCLUSIVE",
        "0 (0.0%)",
        "inductor 3 (75%), eager 1 (25%)",
        "catches downcast_inout; first seen at 1 min 15 s, program 4; 1 statement(s) after 30 runs",
        "2 failing programs; fuzz run --resume --out out",
    ):
        assert part in text


def test_where_there_is_no_terminal_progress_is_a_line() -> None:
    line = "5 s | 10 programs, 2.00/s | PASS 7, BUG 1, EXCUSED 2 | 2/2 workers | 9 min 55 s left | shrinking"
    assert line in told().splitlines()


def test_a_terminal_shows_the_time_left() -> None:
    assert "9 min 55 s left" in told(terminal=True)


def test_programs_get_one_object_a_line_without_ticks() -> None:
    lines = [json.loads(line) for line in told(as_json=True).splitlines()]
    assert [line["event"] for line in lines] == ["started", "ran", "filed", "summary"]
    assert lines[2]["finding"]["entry"] == FINDING.entry
    assert lines[3]["outcomes"] == {"PASS": 7, "BUG": 1, "EXCUSED": 2}
    assert lines[3]["share"]["PASS"] == 0.7
