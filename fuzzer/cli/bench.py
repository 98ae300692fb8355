"""`fuzz bench`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fuzzer.cli import options


@click.command(name="bench")
@click.option("--fixes", "slugs", default="", metavar="SLUG|PATH,...", help="Defects to bring back.  [default: all]")
@click.option(
    "--seconds-per-bug",
    "seconds",
    type=options.Duration(),
    default=120.0,
    help="Time for one defect and one seed, without shrinking.  [default: 120s]",
)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Campaigns per defect.")
@options.programs_from
@options.target
@options.timeout
@options.workers
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("fuzz-out/bench"),
    show_default=True,
    help="Folder for trials and tables; trials that it holds are not run again.",
)
@options.as_json
def command(
    slugs: str,
    seconds: float,
    seeds: int,
    programs_from: Path | None,
    target: str,
    timeout: float,
    workers: int,
    out: Path,
    as_json: bool,
) -> int:
    """Recall: bring each fixed defect back, and see whether campaigns from a cold start find it.

    Writes OUT/results.json and OUT/table.md. Exit status 1 if a defect was missed by most of its seeds.
    """
    from rich.console import Console

    from backend_fixes import FIXES
    from fuzzer import fixes
    from fuzzer.campaign.bench import BenchPlan, run_bench
    from fuzzer.campaign.programs import Generators, read_programs
    from fuzzer.recall import Trial, scores
    from fuzzer.report import bench as report

    names = [name.strip() for name in slugs.split(",") if name.strip()]
    chosen = tuple(names) or tuple(fix.slug for fix in FIXES)
    for name in chosen:  # says at once what cannot be brought back
        backend = fixes.find(name).backend.value
        options.settings(target=target, backend=backend, reintroduce=(name,), fix=(), timeout=timeout)
    plan = BenchPlan(
        fixes=chosen,
        folder=out,
        seconds=seconds,
        seeds=tuple(range(seeds)),
        programs=Generators() if programs_from is None else read_programs(programs_from),
        target=target,
        workers=workers,
        timeout=timeout,
    )
    console = Console()

    def show(trial: Trial, is_new: bool) -> None:
        if as_json:
            click.echo(json.dumps({**asdict(trial), "measured now": is_new}))
        else:
            console.print(report.line(trial, is_new), highlight=False, markup=False, soft_wrap=True)

    found = scores(run_bench(plan, show))
    (out / "results.json").write_text(json.dumps([asdict(score) for score in found], indent=1) + "\n")
    (out / "table.md").write_text(report.markdown(found, plan.identity))
    if not as_json:
        console.print(report.table(found))
    return 0 if all(score.is_detected for score in found) else 1
