"""A campaign's state on disk: every program with its verdict, and the findings, in one SQLite file.

What is in the store is done: a campaign that is killed at any moment and resumed goes on with the first program that
is not there. One campaign at a time holds a folder.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from fuzzer.campaign.protocol import Reply, decode_mode, decode_signature, decode_verdict
from fuzzer.events import Finding, State
from fuzzer.program import Case, FuzzerError
from fuzzer.verdict import Outcome, Verdict

SCHEMA = """
create table meta (name text primary key, value text not null);
create table programs (
    number integer primary key, outcome text not null, signature text, oracle text not null, evidence text not null,
    source text, mode text, seconds text not null, wall real not null, peak integer not null
);
create table findings (
    bucket text primary key, title text not null, signature text not null, state text not null, entry text not null,
    first_program integer not null, first_seen real not null, statements integer not null, evaluations integer not null,
    catches text not null, times integer not null
);
create table examined (number integer primary key, outcome text not null, bucket text);
"""


class Store:
    """The campaign database in a folder. Raises FuzzerError when the folder is taken or belongs to another campaign."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = self._take(folder)
        path = folder / "campaign.sqlite"
        exists = path.exists()
        if exists and not resume:
            self._lock.close()
            raise FuzzerError(f"{folder} holds a campaign already: --resume goes on with it, or choose another --out")
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("pragma journal_mode = wal")
        self._database.execute("pragma synchronous = normal")
        if exists and self._has_schema():
            self._compare(settings)
        else:
            self._database.executescript("begin;" + SCHEMA + "commit;")
            self.set_meta("settings", json.dumps(settings))

    def close(self) -> None:
        self._database.close()
        self._lock.close()

    def meta(self, name: str, default: str = "") -> str:
        row = self._database.execute("select value from meta where name = ?", (name,)).fetchone()
        return default if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        self._database.execute("insert or replace into meta values (?, ?)", (name, value))

    def add_program(self, number: int, reply: Reply) -> None:
        """Records what became of a program; a later call for the same number replaces the earlier one."""
        verdict = reply.verdict
        self._database.execute(
            "insert or replace into programs values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                verdict.outcome,
                None if verdict.signature is None else json.dumps(asdict(verdict.signature)),
                verdict.oracle,
                json.dumps(verdict.evidence),
                None if reply.case is None else reply.case.source,
                None if reply.case is None else json.dumps(asdict(reply.case.mode)),
                json.dumps(verdict.seconds),
                reply.seconds,
                reply.peak,
            ),
        )

    def verdict(self, number: int) -> Verdict:
        row = self._database.execute(
            "select outcome, signature, evidence, oracle, seconds from programs where number = ?", (number,)
        ).fetchone()
        return _verdict(row)

    def verdicts(self) -> Iterator[tuple[int, Verdict]]:
        """Every program's number and verdict, in order."""
        query = "select number, outcome, signature, evidence, oracle, seconds from programs order by number"
        for number, *row in self._database.execute(query):
            yield number, _verdict(row)

    def case(self, number: int) -> Case | None:
        row = self._database.execute("select source, mode from programs where number = ?", (number,)).fetchone()
        if row is None or row[0] is None:
            return None
        return Case(source=row[0], mode=decode_mode(json.loads(row[1])))

    def done(self) -> frozenset[int]:
        """The numbers of the programs that ran."""
        return frozenset(number for (number,) in self._database.execute("select number from programs"))

    def set_outcome(self, number: int, outcome: Outcome, evidence: str) -> None:
        """Corrects a verdict that did not hold: the program no longer counts as a BUG."""
        told = (evidence, *self.verdict(number).evidence)
        self._database.execute(
            "update programs set outcome = ?, signature = null, evidence = ? where number = ?",
            (outcome, json.dumps(told), number),
        )

    def add_examined(self, number: int, outcome: str, bucket: str | None) -> None:
        """Records that a failing program was looked into, so that a resumed campaign does not do it again."""
        self._database.execute("insert or replace into examined values (?, ?, ?)", (number, outcome, bucket))

    def examined(self) -> frozenset[int]:
        return frozenset(number for (number,) in self._database.execute("select number from examined"))

    def put_finding(self, finding: Finding) -> None:
        self._database.execute(
            "insert or replace into findings values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                finding.bucket,
                finding.title,
                json.dumps(asdict(finding.signature)),
                finding.state,
                finding.entry,
                finding.first_program,
                finding.first_seen,
                finding.statements,
                finding.evaluations,
                json.dumps(finding.catches),
                finding.times,
            ),
        )

    def findings(self) -> tuple[Finding, ...]:
        """In the order in which their first programs were numbered."""
        rows = self._database.execute("select * from findings order by first_program, bucket")
        return tuple(
            Finding(
                bucket=bucket,
                title=title,
                signature=decode_signature(json.loads(signature)),
                state=State(state),
                entry=entry,
                first_program=first_program,
                first_seen=first_seen,
                statements=statements,
                evaluations=evaluations,
                catches=tuple(json.loads(catches)),
                times=times,
            )
            for (bucket, title, signature, state, entry, first_program, first_seen, statements, evaluations, catches,
                 times) in rows
        )  # fmt: skip

    def _take(self, folder: Path) -> TextIO:
        lock = open(folder / "lock", "w", encoding="utf-8")  # noqa: SIM115  # held as long as the store
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise FuzzerError(f"{folder}: another campaign is running there; choose another --out") from error
        return lock

    def _has_schema(self) -> bool:
        query = "select count(*) from sqlite_master where name = 'meta'"
        return bool(self._database.execute(query).fetchone()[0]) and bool(self.meta("settings"))

    def _compare(self, settings: Mapping[str, Any]) -> None:
        before = json.loads(self.meta("settings"))
        now = json.loads(json.dumps(settings))
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                self.close()
                raise FuzzerError(
                    f"{self.folder} holds a campaign with {name} = {before.get(name)!r}, not {now.get(name)!r}: "
                    "resume it with the same settings, or choose another --out"
                )


def _verdict(row: Any) -> Verdict:
    outcome, signature, evidence, oracle, seconds = row
    return decode_verdict(
        {
            "outcome": outcome,
            "signature": None if signature is None else json.loads(signature),
            "evidence": json.loads(evidence),
            "oracle": oracle,
            "seconds": json.loads(seconds),
        }
    )
