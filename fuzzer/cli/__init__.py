"""The `fuzz` command. Each command is a module of this package, imported when it is used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from fuzzer.program import FuzzerError

COMMANDS = {
    "run": "Fuzz: generate programs, compare, shrink and file what fails.",
    "replay": "Run corpus entries again and compare with what is expected of them.",
    "check": "Run one program file under every oracle.",
    "minimize": "Shrink a failing program file.",
    "show": "Show a program, its verdict and the kernels it compiles to.",
    "fixes": "State of each backend fix in the installed wheel.",
    "bench": "Recall: which fixed defects a campaign finds when they come back.",
    "doctor": "Versions, device or simulator, and what is missing.",
}

OK, FOUND, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-line descriptions before it imports them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"fuzzer.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="npu-triton-fuzz", message="%(version)s")
def fuzz() -> None:
    """Differential fuzzer for the Ascend NPU Triton backend of PyTorch; runs with or without an NPU.

    Exit status: 0 nothing wrong, or everything as expected; 1 findings; 2 usage or environment.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit status. The one place where errors become a line for people."""
    try:
        status = fuzz.main(args=None if arguments is None else list(arguments), prog_name="fuzz", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return USAGE
    except FuzzerError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        print("fuzz: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status if isinstance(status, int) else OK
