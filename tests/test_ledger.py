"""`corpus/` holds what `corpus/BUGS.md` says, and every entry stands as it expects on the released wheel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzzer import corpus, fixes
from fuzzer.corpus import Entry, Expect

CORPUS = Path(__file__).parents[1] / "corpus"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| ([a-z-]+) \| (.+?) \|")
SEEDS = ("rsplit_output_binding", "downcast_inout", "dualview_symbol")


def rows() -> dict[str, tuple[str, str, str]]:
    """Section, kind and third cell of each row, by entry."""
    found: dict[str, tuple[str, str, str]] = {}
    section = ""
    for line in (CORPUS / "BUGS.md").read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif match := ROW.match(line):
            assert match[1] not in found
            found[match[1]] = (section, match[2], match[3])
    return found


def replay(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and answers of `fuzz replay`, which must be able to run."""
    command = [sys.executable, "-m", "fuzzer", "replay", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def entries() -> dict[str, Entry]:
    return {path.stem: corpus.load(path) for path in corpus.find([CORPUS])}


def test_every_entry_has_its_row_and_every_row_its_entry(entries: dict[str, Entry]) -> None:
    ledger = rows()
    assert set(ledger) == set(entries)
    for name, (section, kind, _) in ledger.items():
        entry = entries[name]
        assert kind == entry.signature.kind
        assert section.startswith("Open" if entry.expect is Expect.FAIL else "Guards")


def test_guards_name_what_they_catch(entries: dict[str, Entry]) -> None:
    for name, (section, _, third) in rows().items():
        if section.startswith("Guards"):
            assert re.findall(r"`([a-z0-9_]+)`", third) == list(entries[name].catches)
            assert all(fixes.find(slug) for slug in entries[name].catches)


def test_the_three_defects_of_the_seed_report_have_guards(entries: dict[str, Entry]) -> None:
    caught = {slug for entry in entries.values() for slug in entry.catches}
    assert set(SEEDS) <= caught


@pytest.mark.sim
@pytest.mark.slow
def test_the_corpus_replays_on_the_released_wheel(entries: dict[str, Entry]) -> None:
    status, replayed = replay(str(CORPUS))
    assert [one["entry"] for one in replayed if not one["fine"]] == []
    assert len(replayed) == len(entries)
    assert status == 0


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("slug", SEEDS)
def test_a_defect_that_comes_back_is_caught_by_name(slug: str, entries: dict[str, Entry]) -> None:
    guards = [str(CORPUS / f"{name}.py") for name, entry in entries.items() if slug in entry.catches]
    status, replayed = replay(*guards, "--reintroduce", slug)
    assert {one["standing"] for one in replayed} == {"catches the defect"}
    assert len(replayed) == len(guards)
    assert status == 1
