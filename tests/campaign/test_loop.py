"""Campaigns: the same programs give the same verdicts, and stopping at any moment loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fuzzer import corpus
from fuzzer.campaign.loop import Campaign, Plan
from fuzzer.campaign.programs import read_programs
from fuzzer.campaign.protocol import Generate, Settings
from fuzzer.campaign.store import Store
from fuzzer.campaign.worker import Pool
from fuzzer.events import Event, Ran, Started, State, Summary, Tick
from fuzzer.verdict import Outcome, Verdict
from tests.campaign.programs import HONEST, PARSED, WRONG


def plan(folder: Path, **changes: object) -> Plan:
    fields: dict[str, object] = {
        "settings": Settings(target="cpu"),
        "folder": folder,
        "corpus": folder / "corpus",
        "seed": 7,
        "programs": 4,
        "workers": 2,
    }
    return Plan(**(fields | changes))  # type: ignore[arg-type]  # only test data


def run(plan: Plan) -> tuple[Summary, list[Event]]:
    events: list[Event] = []
    return Campaign(plan, events.append).run(), events


def verdicts(plan: Plan) -> dict[int, Verdict]:
    store = Store(plan.folder, plan.identity, resume=True)
    found = dict(store.verdicts())
    store.close()
    return found


def test_programs_of_a_folder_run_to_their_end_and_what_cannot_be_parsed_is_filed_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in {"a": HONEST, "b": WRONG, "c": WRONG, "d": PARSED}.items():
        (folder / f"{name}.py").write_text(text)
    summary, events = run(plan(tmp_path / "out", programs=None, source=read_programs(folder)))
    assert sorted(event.number for event in events if isinstance(event, Ran)) == [0, 1, 2, 3]
    assert summary.outcomes == {Outcome.PASS: 2, Outcome.BUG: 2}
    (finding,) = summary.findings
    assert (finding.times, finding.statements, finding.state) == (2, 1, State.VERIFIED)
    assert corpus.load(Path(finding.entry)).case.source.strip() == WRONG.strip()


def test_a_resumed_campaign_goes_on_and_its_verdicts_are_those_of_its_programs(tmp_path: Path, pool: Pool) -> None:
    first, events = run(plan(tmp_path, programs=2))
    assert isinstance(events[0], Started)
    assert events[-1] == first
    assert sorted(event.number for event in events if isinstance(event, Ran)) == [0, 1]
    assert any(isinstance(event, Tick) and event.ready for event in events)
    assert {"generate", "eager", "reference", "inductor", "judge"} <= first.stages.keys()
    assert not first.interrupted

    resumed, events = run(plan(tmp_path, workers=1, resume=True))
    assert sorted(event.number for event in events if isinstance(event, Ran)) == [2, 3]
    assert resumed.programs == 4 == sum(resumed.outcomes.values())
    assert abs(sum(resumed.share.values()) - 1.0) < 1e-9
    assert resumed.seconds > first.seconds
    alone = pool.run([Generate(seed=7, index=index) for index in range(4)])
    assert verdicts(plan(tmp_path)) == {index: reply.verdict for index, reply in enumerate(alone)}


def test_control_c_stops_with_a_summary_and_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzzer", "run", "--target", "cpu", "--workers", "1", "--json"]
    campaign = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert campaign.stdout is not None
    for line in campaign.stdout:
        if json.loads(line)["event"] == "ran":
            break
    begun = time.monotonic()
    campaign.send_signal(signal.SIGINT)
    events = [json.loads(line) for line in campaign.stdout]
    campaign.stdout.close()
    assert campaign.wait(30) in (0, 1)
    assert time.monotonic() - begun < 10.0
    assert events[-1]["event"] == "summary"
    assert events[-1]["interrupted"] is True
    assert events[-1]["programs"] >= 1
    assert not list(tmp_path.glob("npu-triton-fuzz-*"))
