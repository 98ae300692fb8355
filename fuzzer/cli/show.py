"""`fuzz show`."""

from __future__ import annotations

from pathlib import Path

import click

from fuzzer.cli import options


@click.command(name="show")
@options.file
@options.target
@options.backend
@options.reintroduce
@options.fix
@options.timeout
def command(
    file: Path, target: str, backend: str, reintroduce: tuple[str, ...], fix: tuple[str, ...], timeout: float
) -> int:
    """Show a program, its verdict, where the time went, and the kernels it compiles to."""
    from rich.console import Console
    from rich.rule import Rule

    from fuzzer.campaign.protocol import RunCase
    from fuzzer.campaign.worker import Pool
    from fuzzer.corpus import load_case
    from fuzzer.report.terminal import python_source, verdict_lines
    from fuzzer.verdict import Outcome

    case = load_case(file)
    settings = options.settings(target=target, backend=backend, reintroduce=reintroduce, fix=fix, timeout=timeout)
    with Pool(settings, workers=1) as pool:
        (reply,) = pool.run([RunCase(case=case, keep_kernels=True)])
    console = Console()
    console.print(Rule(str(file), align="left"))
    console.print(python_source(case.source))
    console.print(f"mode: {case.mode}", highlight=False)
    console.print(Rule(f"verdict on target {target}", align="left"))
    console.print(verdict_lines(reply.verdict), soft_wrap=True)
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in reply.verdict.seconds)
    console.print(
        f"seconds: {stages or 'unknown'}; {reply.seconds:.2f} in all, {reply.peak >> 20} MiB", highlight=False
    )
    for name, source in reply.kernels:
        console.print(Rule(f"kernel {name}", align="left"))
        console.print(python_source(source))
    if not reply.kernels:
        console.print("no kernel's source was kept", style="dim")
    return 1 if reply.verdict.outcome is Outcome.BUG else 0
