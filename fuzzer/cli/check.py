"""`fuzz check`."""

from __future__ import annotations

from pathlib import Path

import click

from fuzzer.cli import options


@click.command(name="check")
@options.file
@options.target
@options.backend
@options.reintroduce
@options.fix
@options.timeout
@options.as_json
def command(
    file: Path,
    target: str,
    backend: str,
    reintroduce: tuple[str, ...],
    fix: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> int:
    """Run one program file, yours or a corpus entry, under every oracle. Exit status 1 says BUG.

    FILE defines inputs(), which returns the arguments, and program(...), which takes them. A corpus block at its
    beginning may set training, dynamic, calls and config.
    """
    from rich.console import Console

    from fuzzer.campaign.protocol import RunCase, encode
    from fuzzer.campaign.worker import Pool
    from fuzzer.corpus import load_case
    from fuzzer.report.terminal import verdict_lines
    from fuzzer.verdict import Outcome

    case = load_case(file)
    settings = options.settings(target=target, backend=backend, reintroduce=reintroduce, fix=fix, timeout=timeout)
    with Pool(settings, workers=1) as pool:
        (reply,) = pool.run([RunCase(case=case, keep_kernels=True)])
    if as_json:
        click.echo(encode(reply))
    else:
        Console().print(verdict_lines(reply.verdict), soft_wrap=True)
    return 1 if reply.verdict.outcome is Outcome.BUG else 0
