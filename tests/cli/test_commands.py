"""The commands on target `cpu`, in the forms that users and CI call them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from fuzzer.cli import main
from fuzzer.corpus import Entry, Expect, Platform, save
from fuzzer.program import Case
from fuzzer.verdict import Kind, Signature, Stage
from tests.campaign.programs import HONEST, PARSED, WRONG, misbehaving

OUTPUT = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE, origin="output")


def entry(name: str, case: Case, expect: Expect, signature: Signature = OUTPUT) -> Entry:
    return Entry(id=name, sentence=name, case=case, signature=signature, expect=expect, target=Platform.CPU)


def test_check_says_what_each_program_is_and_its_status_says_whether_it_is_a_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    assert main(["check", str(tmp_path / "wrong.py"), "--target", "cpu"]) == 1
    said = capsys.readouterr().out
    assert "BUG  wrong-result at judge (output)" in said
    assert "compiled 3.0, eager 2.0, float64 2.0" in said


def test_replay_tells_expected_fixed_and_failing_apart_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    save(entry("guard", Case(source=HONEST), Expect.PASS), corpus)
    save(entry("open", Case(source=WRONG), Expect.FAIL), corpus)
    save(entry("broken", Case(source=WRONG), Expect.PASS), corpus)
    save(entry("mended", Case(source=HONEST), Expect.FAIL), corpus)
    save(entry("other", misbehaving("os._exit(3)"), Expect.FAIL), corpus)
    junit = tmp_path / "junit.xml"
    assert main(["replay", str(corpus), "--target", "cpu", "--json", "--junit", str(junit)]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["entry"]: (line["standing"], line["fine"]) for line in lines} == {
        "broken": ("fails", False),
        "guard": ("as expected", True),
        "mended": ("fixed? change expect to pass", False),
        "open": ("as expected", True),
        "other": ("fails in another way", False),
    }
    suite = ET.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "3", "0")
    cases = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    assert [name for name, failure in cases.items() if failure is not None] == ["broken", "mended", "other"]
    assert "compiled 3.0" in str(getattr(cases["broken"], "text", ""))

    assert main(["replay", str(corpus / "guard.py"), str(corpus / "open.py"), "--target", "cpu"]) == 0
    assert "2 entries, 2 as expected, 0 not" in capsys.readouterr().out


def test_show_prints_the_program_the_verdict_and_the_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "honest.py").write_text(HONEST)
    assert main(["show", str(tmp_path / "honest.py"), "--target", "cpu"]) == 0
    said = capsys.readouterr().out
    for part in ("return x.sum(0), x * 2", "verdict on target cpu", "PASS", "inductor"):
        assert part in said


def test_minimize_leaves_a_program_that_passes_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fine.py"
    path.write_text(PARSED)
    assert main(["minimize", str(path), "--target", "cpu"]) == 0
    assert "does not fail: there is nothing to shrink" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.sim
@pytest.mark.slow
def test_minimize_names_the_defect_that_the_small_program_catches(tmp_path: Path) -> None:
    guard = Path(__file__).parents[2] / "corpus" / "downcast-inout.py"
    small = tmp_path / "small.py"
    options = ["--reintroduce", "downcast_inout", "--evaluations", "1", "--out", str(small)]
    assert main(["minimize", str(guard), *options]) == 1
    assert '# catches = ["downcast_inout"]' in small.read_text().splitlines()


def test_fixes_lists_every_fix_with_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fixes", "list", "--json"]) == 0
    states = {line["slug"]: line["state"] for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {"rsplit_output_binding", "dualview_symbol", "downcast_inout"} <= states.keys()
    assert main(["fixes", "show", "downcast_inout"]) == 0
    assert "edit of torch_npu." in capsys.readouterr().out


def test_doctor_names_what_a_target_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--target", "cpu", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == ["torch", "C++ compiler"]
    assert all(line["ok"] for line in lines)
    assert main(["doctor", "--target", "sim", "--json"]) in (0, 2)
    assert {"torch_npu", "triton-ascend"} <= {json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()}
