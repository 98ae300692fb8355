"""`fuzz fixes`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from fuzzer.cli import options


@click.group(name="fixes", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """State of each backend fix in the installed wheel: defects that --reintroduce brings back."""
    return 0 if context.invoked_subcommand else _list(False)


@command.command(name="list")
@options.as_json
def list_command(as_json: bool) -> int:
    """All fixes: which are in the wheel, and so can be taken back."""
    return _list(as_json)


@command.command(name="show")
@click.argument("slug")
def show_command(slug: str) -> int:
    """One fix: what was wrong, how it shows, and what is edited."""
    from rich.console import Console

    from fuzzer import fixes

    fix = fixes.find(slug)
    console = Console(highlight=False)
    lines = [
        ("slug", fix.slug),
        ("title", fix.title),
        ("state", fixes.explain(fix)),
        ("backend", str(fix.backend)),
        ("reference", fix.reference),
        ("kind", str(fix.kind)),
        ("symptom", fix.symptom),
        ("trigger", fix.trigger),
        ("", fix.summary),
    ]
    for name, value in lines:
        console.print(f"{name + ':' if name else '':11}{value}", markup=False, soft_wrap=True)
    for edit in fix.edits:
        console.print(f"edit of {edit.place}", markup=False, soft_wrap=True)
        console.print(f"  fixed:     {edit.fixed}", markup=False, soft_wrap=True)
        console.print(f"  defective: {edit.defective or '(missing)'}", markup=False, soft_wrap=True)
    return 0


def _list(as_json: bool) -> int:
    from rich.console import Console

    from backend_fixes import FIXES
    from fuzzer import fixes
    from fuzzer.report.terminal import table

    if as_json:
        for fix in FIXES:
            click.echo(json.dumps({**asdict(fix), "state": fixes.state(fix)}))
        return 0
    rows = [(fix.slug, str(fixes.state(fix)), str(fix.backend), fix.title) for fix in FIXES]
    Console().print(table("backend fixes", ("slug", "state", "backend", "what was wrong"), rows))
    return 0
