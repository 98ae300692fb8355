"""Entries are read as they were written, say clearly what is wrong with them, and run with torch alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fuzzer.corpus import Entry, Expect, Platform, Standing, compare, find, load, load_case, render, save
from fuzzer.generators import generate
from fuzzer.program import Case, FuzzerError, Mode
from fuzzer.source import case_of, parse_program
from fuzzer.verdict import Kind, Outcome, Signature, Stage, Verdict

SOURCE = """\
import torch


def inputs():
    x = torch.arange(6.0).reshape(2, 3)
    return (x.t(), torch.ones(1).expand(3))


def program(x, y):
    return x * 2, y + x.sum(1)
"""

WRONG = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE, origin="output")


def entry(**changes: object) -> Entry:
    fields: dict[str, object] = {
        "id": "wrong-result-sum-1a2b",
        "sentence": 'A sum over a permuted view: "compiled" differs.',
        "case": Case(source=SOURCE),
        "signature": WRONG,
        "expect": Expect.PASS,
        "catches": ("downcast_inout",),
        "backend": "triton_experimental",
        "found_on": (("torch", "2.13.0"), ("triton-ascend", "3.2.0")),
    }
    return Entry(**(fields | changes))  # type: ignore[arg-type]  # only test data


MODES = (
    Mode(),
    Mode(training=True),
    Mode(dynamic=True, calls=3),
    Mode(config=(("max_autotune", True), ("triton.x", 3), ("name", "a b"))),
)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_an_entry_is_read_as_it_was_written(tmp_path: Path, mode: Mode) -> None:
    written = entry(case=Case(source=SOURCE, mode=mode))
    assert load(save(written, tmp_path)) == written


def test_an_open_defect_found_on_another_platform_is_read_as_it_was_written(tmp_path: Path) -> None:
    signature = Signature(kind=Kind.COMPILE_ERROR, stage=Stage.ADAPTER, origin='tool: "x" \\ y\n')
    written = entry(signature=signature, expect=Expect.FAIL, catches=(), target=Platform.CPU, backend="", found_on=())
    assert load(save(written, tmp_path)) == written


@pytest.mark.parametrize("index", range(20))
def test_a_generated_program_comes_back_from_its_entry(tmp_path: Path, index: int) -> None:
    program = generate(5, index)
    loaded = load(save(entry(case=case_of(program)), tmp_path))
    assert loaded.case == case_of(program)
    assert parse_program(loaded.case.source, loaded.case.mode) == program


def test_saving_again_changes_nothing_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = save(entry(), tmp_path)
    text = path.read_text()
    assert save(load(path), tmp_path) == path
    assert path.read_text() == text
    assert [file.name for file in tmp_path.iterdir()] == ["wrong-result-sum-1a2b.py"]


def test_a_file_of_the_users_own_needs_no_block(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    assert load_case(path) == Case(source=SOURCE)
    with pytest.raises(FuzzerError, match="no `# /// corpus` block"):
        load(path)


def test_a_block_may_set_the_mode_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("# /// corpus\n# training = true\n# calls = 2\n# ///\n" + SOURCE)
    assert load_case(path) == Case(source=SOURCE, mode=Mode(training=True, calls=2))


BROKEN: Mapping[str, tuple[str, str, str]] = {
    "a missing field": ("# expect = ", "# training = true #", "field expect is missing"),
    "an unknown field": ("# expect = ", "# expects = ", "unknown field expects = 'pass'.*did you mean expect"),
    "an unknown kind": ('"wrong-result"', '"wrong"', "kind = 'wrong': one of wrong-result, .* is wanted"),
    "an unknown expectation": ('expect = "pass"', 'expect = "maybe"', "expect = 'maybe': one of pass, fail is wanted"),
    "catches that is no list": ('catches = ["downcast_inout"]', 'catches = "x"', "catches = 'x': a list"),
    "text that is no text": ('origin = "output"', "origin = 3", "origin = 3: text in quotes is wanted"),
    "a flag that is no flag": ('# expect = "pass"', '# expect = "pass"\n# training = 1', "training = 1: true or false"),
    "calls below one": ('# expect = "pass"', '# expect = "pass"\n# calls = 0', "calls = 0: a positive number"),
    "a config of lists": ('# expect = "pass"', '# expect = "pass"\n# config = {a = []}', "a table of Inductor options"),
    "versions that are no table": ("# found-on = {", "# found-on = 3 # {", "found-on = 3: a table of package versions"),
    "an id that is not the file's name": ("sum-1a2b", "sum", "id = 'wrong-result-sum', but the file is called"),
    "no TOML": ("# kind = ", "# kind : ", "the corpus block is not TOML"),
    "a line that is no comment": ("# kind = ", "kind = ", ":3: .* does not begin with #"),
    "a block without end": ("# ///\n", "#\n", "has no end"),
    "no Python": ("def program(x, y):", "def program(x, y:", "not Python"),
    "no program": ("def program(", "def programme(", r"no `def program\(...\)`"),
    "no inputs": ("def inputs(", "def input(", r"no `def inputs\(...\)`"),
    "an open defect that catches": ('"pass"', '"fail"', "cannot tell whether a defect was brought back"),
}


@pytest.mark.parametrize("flaw", BROKEN)
def test_a_flaw_is_named_with_file_field_value_and_remedy(tmp_path: Path, flaw: str) -> None:
    before, after, message = BROKEN[flaw]
    path = save(entry(), tmp_path)
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(FuzzerError, match=message) as raised:
        load(path)
    assert str(path) in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    for name in ("binary.py", "missing.py"):
        with pytest.raises(FuzzerError, match=f"{name}: cannot be read"):
            load_case(tmp_path / name)


@pytest.mark.parametrize("identity", ["", "Upper", "a/b", "-a", "a.b"])
def test_an_id_that_is_no_file_name_cannot_be_built(identity: str) -> None:
    with pytest.raises(ValueError, match="small letters"):
        entry(id=identity)


def test_entries_are_found_once_and_in_order(tmp_path: Path) -> None:
    second, first = save(entry(id="b"), tmp_path), save(entry(id="a"), tmp_path)
    (tmp_path / "notes.py").write_text("x = 1\n")
    assert find([tmp_path, second]) == (first, second)
    assert find([second, tmp_path]) == (second, first)


def test_a_path_without_entries_is_named(tmp_path: Path) -> None:
    with pytest.raises(FuzzerError, match=r"no \.py file in this folder"):
        find([tmp_path])
    with pytest.raises(FuzzerError, match="gone: no such file or folder"):
        find([tmp_path / "gone"])


PASS = Verdict(outcome=Outcome.PASS)
BUG = Verdict(outcome=Outcome.BUG, signature=WRONG)
CRASH = Verdict(outcome=Outcome.BUG, signature=Signature(kind=Kind.CRASH, stage=Stage.EXECUTE, origin="SIGSEGV"))
EXCUSED = Verdict(outcome=Outcome.EXCUSED)
LOST = Verdict(outcome=Outcome.LOST)
FLAKY = Verdict(outcome=Outcome.RUN_FLAKY)

GUARD = entry()
OPEN = entry(expect=Expect.FAIL, catches=())


@pytest.mark.parametrize(
    ("filed", "verdict", "target", "reintroduced", "standing"),
    [
        (GUARD, PASS, "sim", (), Standing.AS_EXPECTED),
        (GUARD, PASS, "cpu", (), Standing.AS_EXPECTED),
        (GUARD, BUG, "sim", (), Standing.FAILS),
        (GUARD, BUG, "cpu", (), Standing.FAILS),
        (GUARD, FLAKY, "sim", (), Standing.FAILS),
        (GUARD, EXCUSED, "sim", (), Standing.UNDECIDED),
        (GUARD, LOST, "sim", (), Standing.UNKNOWN),
        (GUARD, BUG, "sim", ("downcast_inout",), Standing.CAUGHT),
        (GUARD, CRASH, "sim", ("other", "downcast_inout"), Standing.CAUGHT),
        (GUARD, PASS, "sim", ("downcast_inout",), Standing.MISSED),
        (GUARD, PASS, "sim", ("other",), Standing.AS_EXPECTED),
        (GUARD, BUG, "sim", ("other",), Standing.FAILS),
        (OPEN, BUG, "sim", (), Standing.AS_EXPECTED),
        (OPEN, BUG, "npu", (), Standing.AS_EXPECTED),
        (OPEN, CRASH, "sim", (), Standing.CHANGED),
        (OPEN, PASS, "sim", (), Standing.FIXED),
        (OPEN, EXCUSED, "sim", (), Standing.UNDECIDED),
        (OPEN, PASS, "cpu", (), Standing.AS_EXPECTED),
        (OPEN, BUG, "cpu", (), Standing.AS_EXPECTED),
    ],
)
def test_a_verdict_is_compared_with_what_was_expected(
    filed: Entry, verdict: Verdict, target: str, reintroduced: tuple[str, ...], standing: Standing
) -> None:
    assert compare(filed, verdict, target=target, reintroduced=reintroduced) is standing


def test_only_what_is_expected_or_undecided_is_fine() -> None:
    assert [standing for standing in Standing if standing.is_fine] == [Standing.AS_EXPECTED, Standing.UNDECIDED]


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode(), Mode(training=True, dynamic=True, calls=2)], ids=str)
def test_an_entry_runs_with_torch_alone_and_shows_eager_and_compiled(tmp_path: Path, mode: Mode) -> None:
    path = save(entry(case=Case(source=SOURCE, mode=mode)), tmp_path)
    code = f"import sys, runpy; sys.modules['torch_npu'] = None; runpy.run_path({str(path)!r}, run_name='__main__')"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    names = ["outputs", "arguments", *(["gradients"] if mode.training else [])] * mode.calls
    shown = [line.partition(":")[0] for line in ran.stdout.splitlines() if " on cpu, " in line]
    assert shown == [f"{name} on cpu, {run}" for name in names for run in ("eager", "compiled")]
    results = [line.partition(": ")[2] for line in ran.stdout.splitlines() if line.startswith("arguments on cpu")]
    assert results[0] == results[1]


def test_the_text_is_what_a_person_would_write() -> None:
    text = render(entry())
    assert text.startswith('# /// corpus\n# id = "wrong-result-sum-1a2b"\n# kind = "wrong-result"\n')
    assert '"""A sum over a permuted view: "compiled" differs."""\n\nimport torch\n\n\ndef inputs():' in text
    compile(text, "entry", "exec")
