"""Options that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fuzzer.program import FuzzerError

if TYPE_CHECKING:
    from fuzzer.campaign.protocol import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

TARGETS = ("sim", "npu", "cpu", "cuda")
BACKENDS = ("triton_experimental", "default")

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")


class Duration(click.ParamType[float]):
    """A time such as 90, 300s, 10m, 2h or 3d, as seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = DURATION.fullmatch(str(value))
        if found is None or float(found[1]) == 0:
            self.fail(f"{value!r} is not a time: write 300s, 10m, 2h or 3d", param, ctx)
        return float(found[1]) * UNITS[found[2] or "s"]


def workers_by_default() -> int:
    """One worker for each core that this process may use."""
    return len(os.sched_getaffinity(0))


target = click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="sim",
    show_default=True,
    help="Where programs are compiled and run.",
)
backend = click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default=BACKENDS[0],
    show_default=True,
    help="Inductor backend of torch_npu.",
)
reintroduce = click.option(
    "--reintroduce",
    multiple=True,
    metavar="SLUG",
    help="Bring a fixed defect back (see `fuzz fixes`); may be repeated.",
)
fix = click.option("--fix", multiple=True, metavar="SLUG", help="Apply a fix that the wheel lacks; may be repeated.")
timeout = click.option(
    "--timeout", type=Duration(), default=60.0, help="Time limit of one program and all it starts.  [default: 60s]"
)
workers = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=workers_by_default,
    show_default="number of cores",
    help="Programs that run at once.",
)
programs_from = click.option(
    "--programs-from",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of plain .py programs to run instead of generated ones.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Machine-readable output, one JSON object a line.")
file = click.argument("file", type=click.Path(path_type=Path))


def settings(
    *, target: str, backend: str, reintroduce: tuple[str, ...], fix: tuple[str, ...], timeout: float
) -> Settings:
    """The settings that the options ask for. Raises FuzzerError for a fix that is none or belongs elsewhere."""
    from fuzzer import fixes
    from fuzzer.campaign.protocol import Settings

    for name in (*reintroduce, *fix):
        found = fixes.find(name)
        if target not in ("sim", "npu"):
            raise FuzzerError(f"{found.slug} is a fix of torch_npu: target {target} does not run it; use --target sim")
        if found.backend != backend:
            raise FuzzerError(
                f"{found.slug} is a fix of backend {found.backend}, not {backend}: add --backend {found.backend}"
            )
    return Settings(target=target, backend=backend, reintroduce=reintroduce, fix=fix, timeout=timeout)
