"""`fuzz replay`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuzzer.cli import options

if TYPE_CHECKING:
    from fuzzer.campaign.replay import Replayed


@click.command(name="replay")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.target
@click.option("--backend", type=click.Choice(options.BACKENDS), help="Inductor backend.  [default: each entry's own]")
@options.reintroduce
@options.fix
@options.timeout
@options.workers
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write a JUnit XML file as well.")
@options.as_json
def command(
    paths: tuple[Path, ...],
    target: str,
    backend: str | None,
    reintroduce: tuple[str, ...],
    fix: tuple[str, ...],
    timeout: float,
    workers: int,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Run corpus entries (files or folders) again and compare each with what is expected of it.

    With --reintroduce, entries that catch the defect fail: exit status 1, and they are named.
    """
    from rich.console import Console

    from fuzzer import corpus, fixes
    from fuzzer.campaign.protocol import Settings
    from fuzzer.campaign.replay import replay as run_again
    from fuzzer.campaign.worker import Pool
    from fuzzer.report import terminal

    slugs = tuple(fixes.find(name).slug for name in reintroduce)
    entries = [(path, corpus.load(path)) for path in corpus.find(paths)]
    settings = Settings(
        target=target, backend=backend or options.BACKENDS[0], reintroduce=reintroduce, fix=fix, timeout=timeout
    )
    done: list[Replayed] = []
    console = Console()
    with Pool(settings, workers=workers) as pool, console.status(f"replaying {len(entries)} entries"):
        for replayed in run_again(entries, pool, reintroduced=slugs, own_backend=backend is None):
            done.append(replayed)
            if as_json:
                click.echo(json.dumps(_as_json(replayed)))
    if junit is not None:
        _write_junit(junit, target, done)
    bad = [replayed for replayed in done if not replayed.standing.is_fine]
    if not as_json:
        rows = [
            (
                replayed.entry.id,
                str(replayed.entry.expect),
                terminal.outcome_text(replayed.reply.verdict.outcome),
                str(replayed.standing),
                f"{replayed.reply.seconds:.1f}",
            )
            for replayed in done
        ]
        console.print(terminal.table("replay", ("entry", "expect", "verdict", "standing", "seconds"), rows))
        for replayed in bad:
            verdict = replayed.reply.verdict
            said = f"{replayed.path}: {replayed.standing}: {verdict.signature or verdict.outcome}"
            console.print(said, highlight=False, markup=False, soft_wrap=True)
        console.print(f"{len(done)} entries, {len(done) - len(bad)} as expected, {len(bad)} not", highlight=False)
    return 1 if bad else 0


def _as_json(replayed: Replayed) -> dict[str, object]:
    return {
        "entry": replayed.entry.id,
        "path": str(replayed.path),
        "expect": replayed.entry.expect,
        "catches": replayed.entry.catches,
        "standing": replayed.standing,
        "fine": replayed.standing.is_fine,
        "verdict": asdict(replayed.reply.verdict),
        "seconds": replayed.reply.seconds,
    }


def _write_junit(path: Path, target: str, done: Sequence[Replayed]) -> None:
    from fuzzer.corpus import Standing
    from fuzzer.report.junit import TestCase, write

    cases: list[TestCase] = []
    for replayed in done:
        verdict = replayed.reply.verdict
        said = f"{replayed.standing}: {verdict.outcome} {verdict.signature or ''}".rstrip()
        cases.append(
            TestCase(
                name=replayed.entry.id,
                group=f"corpus.{target}",
                seconds=replayed.reply.seconds,
                failure="" if replayed.standing.is_fine else said,
                skipped=said if replayed.standing is Standing.UNDECIDED else "",
                details=verdict.evidence,
            )
        )
    write(path, "fuzz replay", cases)
