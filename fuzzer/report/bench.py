"""What `fuzz bench` shows: a line per trial, and a table per run for the terminal and in Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from rich.table import Table

from fuzzer.recall import STAGES, Score, Trial

HEAD = ("defect", *STAGES, "statements")


def line(trial: Trial, is_new: bool) -> str:
    """One trial."""
    times = ", ".join(f"{stage} {_seconds(getattr(trial, stage))}" for stage in STAGES)
    size = "" if trial.statements is None else f", {trial.statements} statement(s)"
    was = "" if is_new else " (measured before)"
    return f"{trial.slug} seed {trial.seed}: {times} in {trial.programs} programs{size}{was}"


def table(scores: Sequence[Score]) -> Table:
    """Median seconds of each stage, and in how many seeds."""
    shown = Table(*HEAD, title="recall")
    for score in scores:
        shown.add_row(*_cells(score), style="" if score.is_detected else "red")
    shown.caption = summary(scores)
    return shown


def markdown(scores: Sequence[Score], identity: Mapping[str, Any]) -> str:
    """The table with the machine, the date and what was measured."""
    packages = ", ".join(f"{name} {version}" for name, version in identity["versions"].items())
    lines = [
        f"{date.today()}, {processor()}, {len(os.sched_getaffinity(0))} cores, {identity['workers']} workers; "
        f"{packages}; programs from {identity['source']}; {identity['seconds']:.0f} s per defect and seed.",
        "",
        summary(scores) + ".",
        "",
    ]
    return "\n".join(lines) + "\n" + markdown_table(HEAD, map(_cells, scores))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def summary(scores: Sequence[Score]) -> str:
    """How many defects, and how many trials, got to each stage."""
    trials = sum(score.seeds for score in scores)
    hits = ", ".join(f"{stage} {sum(score.hits[stage] for score in scores)}" for stage in STAGES)
    found = sum(score.is_detected for score in scores)
    return f"{found} of {len(scores)} defects detected in at least half of the seeds; of {trials} trials: {hits}"


def _cells(score: Score) -> tuple[str, ...]:
    times = (f"{_seconds(score.medians[stage])} ({score.hits[stage]}/{score.seeds})" for stage in STAGES)
    return (score.slug, *times, "" if score.statements is None else str(score.statements))


def _seconds(time: float | None) -> str:
    return "never" if time is None else f"{time:.0f} s"


def processor() -> str:
    """The name of this machine's processor."""
    with open("/proc/cpuinfo") as file:
        names = [text.partition(":")[2].strip() for text in file if text.startswith("model name")]
    return names[0] if names else platform.machine()
