"""`fuzz run`."""

from __future__ import annotations

from pathlib import Path

import click

from fuzzer.cli import options


@click.command(name="run")
@click.option("--time", "seconds", type=options.Duration(), help="How long to begin new programs: 300s, 10m, 2h.")
@click.option("--programs", type=click.IntRange(min=1), metavar="N", help="How many programs to run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same programs.")
@options.workers
@options.target
@options.backend
@click.option("--families", metavar="NAME,...", default="", help="Families of operators to draw from.  [default: all]")
@options.programs_from
@options.reintroduce
@options.fix
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for state and findings.")
@click.option("--resume", is_flag=True, help="Go on with the campaign in --out, or begin one there.")
@click.option(
    "--corpus", type=click.Path(path_type=Path, file_okay=False), help="Where entries go.  [default: OUT/corpus]"
)
@options.timeout
@options.as_json
def command(
    seconds: float | None,
    programs: int | None,
    seed: int,
    workers: int,
    target: str,
    backend: str,
    families: str,
    programs_from: Path | None,
    reintroduce: tuple[str, ...],
    fix: tuple[str, ...],
    out: Path | None,
    resume: bool,
    corpus: Path | None,
    timeout: float,
    as_json: bool,
) -> int:
    """Fuzz: generate programs, run them compiled and eager, shrink and file what fails.

    Without --time and --programs it runs until Ctrl-C, which stops it cleanly and keeps everything for --resume.
    """
    from rich.console import Console

    from fuzzer import fixes
    from fuzzer.campaign.loop import Campaign, Plan
    from fuzzer.campaign.programs import Generators, read_programs
    from fuzzer.report.terminal import Display

    if resume and out is None:
        raise click.UsageError("--resume needs --out: the folder of the campaign to go on with")
    if programs_from is not None and families:
        raise click.UsageError("--families chooses what is generated; with --programs-from nothing is")
    generators = Generators(families=chosen_families(families))
    folder = out or unused_folder(Path("fuzz-out"), f"{target}-seed{seed}")
    plan = Plan(
        settings=options.settings(target=target, backend=backend, reintroduce=reintroduce, fix=fix, timeout=timeout),
        folder=folder,
        corpus=corpus or folder / "corpus",
        seed=seed,
        source=generators if programs_from is None else read_programs(programs_from),
        config=tuple(option for name in reintroduce for option in fixes.find(name).config),
        programs=programs,
        seconds=seconds,
        workers=workers,
        resume=resume,
    )
    with Display(Console(), as_json=as_json) as display:
        summary = Campaign(plan, display).run()
    return 1 if summary.has_findings else 0


def unused_folder(parent: Path, name: str) -> Path:
    """`parent/name`, or with a number after it so that nothing is there yet."""
    folder, number = parent / name, 1
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


def chosen_families(text: str) -> tuple[str, ...]:
    """The families named in a list with commas. Raises UsageError that lists those there are."""
    from fuzzer.generators import FAMILIES

    known = [str(family) for family in FAMILIES]
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise click.UsageError(f"--families: {name!r} is none; use some of {', '.join(known)}")
    return names
