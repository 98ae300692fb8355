"""What is in the store is there after a resume, and a folder belongs to one campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.campaign.protocol import Reply
from fuzzer.campaign.store import Store
from fuzzer.events import Finding, State
from fuzzer.program import Case, FuzzerError, Mode
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

SETTINGS = {"target": "cpu", "seed": 3, "families": ("a",)}
SIGNATURE = Signature(kind=Kind.CRASH, stage=Stage.EXECUTE, origin="SIGSEGV")
CASE = Case(source="text", mode=Mode(dynamic=True, config=(("a", 1),)))
BUG = Reply(verdict=Verdict(outcome=Outcome.BUG, signature=SIGNATURE, evidence=("it died",)), case=CASE, seconds=1.0)
PASS = Reply(verdict=Verdict(outcome=Outcome.PASS, seconds=(("eager", 0.5),)), case=CASE)
FINDING = Finding(
    bucket="crash-sum-1",
    title="sum dies",
    signature=SIGNATURE,
    state=State.VERIFIED,
    entry="corpus/crash-sum-1.py",
    first_program=4,
    first_seen=1.5,
    statements=2,
    evaluations=30,
    catches=("a", "b"),
)


def test_everything_is_there_after_a_resume(tmp_path: Path) -> None:
    store = Store(tmp_path, SETTINGS, resume=False)
    store.add_program(4, BUG)
    store.add_program(2, PASS)
    store.add_examined(4, "shrunk", "crash-sum-1")
    store.put_finding(FINDING)
    store.set_meta("seconds", "2.5")
    store.close()

    store = Store(tmp_path, SETTINGS, resume=True)
    assert store.done() == {2, 4}
    assert list(store.verdicts()) == [(2, PASS.verdict), (4, BUG.verdict)]
    assert store.case(4) == CASE
    assert store.case(3) is None
    assert store.examined() == {4}
    assert store.findings() == (FINDING,)
    assert store.meta("seconds") == "2.5"
    store.close()


def test_a_verdict_that_did_not_hold_is_corrected(tmp_path: Path) -> None:
    store = Store(tmp_path, SETTINGS, resume=False)
    store.add_program(4, BUG)
    store.set_outcome(4, Outcome.COMPILE_FLAKY, "the second time it passed")
    expected = Verdict(outcome=Outcome.COMPILE_FLAKY, evidence=("the second time it passed", "it died"))
    assert store.verdict(4) == expected
    store.close()


def test_a_folder_with_a_campaign_is_only_taken_up_on_request(tmp_path: Path) -> None:
    Store(tmp_path, SETTINGS, resume=False).close()
    with pytest.raises(FuzzerError, match="holds a campaign already: --resume goes on with it"):
        Store(tmp_path, SETTINGS, resume=False)


def test_a_campaign_with_other_settings_is_not_taken_up(tmp_path: Path) -> None:
    Store(tmp_path, SETTINGS, resume=False).close()
    with pytest.raises(FuzzerError, match="holds a campaign with seed = 3, not 4"):
        Store(tmp_path, {**SETTINGS, "seed": 4}, resume=True)
    Store(tmp_path, SETTINGS, resume=True).close()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, SETTINGS, resume=False)
    with pytest.raises(FuzzerError, match="another campaign is running there"):
        Store(tmp_path, SETTINGS, resume=True)
    store.close()
    Store(tmp_path, SETTINGS, resume=True).close()


def test_resuming_where_nothing_is_begins(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", SETTINGS, resume=True)
    assert store.done() == frozenset()
    store.close()
