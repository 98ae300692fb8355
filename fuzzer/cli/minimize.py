"""`fuzz minimize`."""

from __future__ import annotations

from pathlib import Path

import click

from fuzzer.cli import options


@click.command(name="minimize")
@options.file
@options.target
@options.backend
@options.reintroduce
@options.fix
@options.timeout
@options.workers
@click.option(
    "--evaluations", type=click.IntRange(min=1), default=500, show_default=True, help="Programs to try at most."
)
@click.option("--time", "seconds", type=options.Duration(), help="How long to shrink at most.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Where to write.  [default: FILE.min.py]")
def command(
    file: Path,
    target: str,
    backend: str,
    reintroduce: tuple[str, ...],
    fix: tuple[str, ...],
    timeout: float,
    workers: int,
    evaluations: int,
    seconds: float | None,
    out: Path | None,
) -> int:
    """Shrink a failing program file to the smallest program that fails in the same way.

    With --reintroduce the small program also passes on the wheel as released.
    """
    from rich.console import Console

    from fuzzer import corpus
    from fuzzer.campaign.examine import Examiner, Unsteady
    from fuzzer.campaign.protocol import RunCase
    from fuzzer.campaign.worker import Pool
    from fuzzer.minimize import Budget
    from fuzzer.report.terminal import verdict_lines
    from fuzzer.source import parse_program

    case = corpus.load_case(file)
    parse_program(case.source, case.mode)  # says at once what it cannot shrink
    console = Console()
    settings = options.settings(target=target, backend=backend, reintroduce=reintroduce, fix=fix, timeout=timeout)
    with Pool(settings, workers=workers) as pool:
        examiner = Examiner(pool)
        (reply,) = pool.run([RunCase(case=case)])
        if reply.verdict.signature is None:
            console.print(verdict_lines(reply.verdict), soft_wrap=True)
            console.print(f"{file} does not fail: there is nothing to shrink", highlight=False, soft_wrap=True)
            return 0
        suspect = examiner.attribute(0, case, reply.verdict.signature)
        if isinstance(suspect, Unsteady):
            console.print(
                f"{file} does not fail in the same way every time: {suspect.evidence}", highlight=False, soft_wrap=True
            )
            return 1
        with console.status("shrinking"):
            examined = examiner.shrink(suspect, budget=Budget(evaluations=evaluations, seconds=seconds))
            entry = examiner.entry(examined)
    path = out or file.with_suffix(".min.py")
    path.write_text(corpus.render(entry), encoding="utf-8")
    console.print(
        f"{path}: {examined.statements} statement(s) after {examined.evaluations} programs in "
        f"{examined.seconds:.0f} s: {examined.title}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    return 1
