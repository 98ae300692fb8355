"""What the terminal shows: a campaign live and at its end, a replay as a table, a verdict with its evidence."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from fuzzer.events import Event, Filed, Finding, Ran, Started, Summary, Tick
from fuzzer.verdict import Outcome, Verdict

COLOURS: Mapping[Outcome, str] = {
    Outcome.PASS: "green",
    Outcome.BUG: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.EXCUSED: "yellow",
    Outcome.RUN_FLAKY: "magenta",
    Outcome.COMPILE_FLAKY: "magenta",
    Outcome.UNSUPPORTED: "cyan",
    Outcome.INVALID: "cyan",
    Outcome.LOST: "red",
}

PLAIN_EVERY = 10.0
"""Seconds between two progress lines where there is no terminal."""

QUALITY = (Outcome.INCONCLUSIVE, Outcome.EXCUSED, Outcome.INVALID)
"""Outcomes whose rates are figures of merit of the fuzzer itself: printed even when zero."""


class Display:
    """Shows a campaign: a live panel on a terminal, a line now and then elsewhere, or events as lines of JSON."""

    def __init__(self, console: Console, *, as_json: bool = False) -> None:
        self._console = console
        self._json = as_json
        self._live: Live | None = None
        self._found: list[Finding] = []
        self._next_line = 0.0

    def __enter__(self) -> Display:
        if self._console.is_terminal and not self._json:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        if self._json:
            if not isinstance(event, Tick):
                self._say_json(event)
            return
        match event:
            case Started():
                self._started(event)
            case Ran():
                return  # counted in the ticks
            case Filed():
                self._found.append(event.finding)
                self._console.print(Text(f"found {_finding_line(event.finding)}", style="bold red"), soft_wrap=True)
            case Tick():
                self._tick(event)
            case Summary():
                if self._live is not None:
                    self._live.stop()
                    self._live = None
                self._console.print(summary_panel(event))
                for line in finding_lines(event.findings):
                    self._console.print(line, soft_wrap=True)

    def _say_json(self, event: Started | Ran | Filed | Summary) -> None:
        fields = asdict(event)
        if isinstance(event, Summary):
            fields["share"] = {str(outcome): share for outcome, share in event.share.items()}
            fields["outcomes"] = {str(outcome): count for outcome, count in event.outcomes.items()}
        line = json.dumps({"event": type(event).__name__.lower(), **fields}, default=str)
        self._console.file.write(line + "\n")
        self._console.file.flush()

    def _started(self, event: Started) -> None:
        versions = ", ".join(f"{name} {version}" for name, version in event.versions)
        backend = f" {event.backend}" if event.target in ("sim", "npu") else ""
        behind = f", {event.behind} programs done before" if event.behind else ""
        self._console.print(
            f"fuzzing target {event.target}{backend} ({versions}), seed {event.seed}, "
            f"{event.workers} worker(s), state in {event.folder}{behind}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    def _tick(self, tick: Tick) -> None:
        if self._live is not None:
            self._live.update(_panel(tick, self._found))
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + PLAIN_EVERY
            self._console.print(_status(tick), highlight=False, markup=False, soft_wrap=True)


def summary_panel(summary: Summary) -> RenderableType:
    """A campaign's end: what ran, how fast, what was concluded, where the time went."""
    figures = Table.grid(padding=(0, 2))
    figures.add_row(
        "programs", f"{summary.programs} in {_duration(summary.seconds)}, {summary.rate:.2f} programs per second"
    )
    for outcome in Outcome:
        count = summary.outcomes.get(outcome, 0)
        if count or outcome in QUALITY:
            share = summary.share.get(outcome, 0.0)
            figures.add_row(Text(str(outcome), style=COLOURS[outcome]), f"{count} ({share:.1%})")
    total = sum(summary.stages.values())
    if total:
        stages = sorted(summary.stages.items(), key=lambda item: -item[1])
        figures.add_row(
            "seconds by stage", ", ".join(f"{name} {spent:.0f} ({spent / total:.0%})" for name, spent in stages)
        )
    figures.add_row("distinct findings", str(len(summary.findings)))
    if summary.repeated:
        figures.add_row("not shrunk", f"{summary.repeated} failing programs like those of known findings")
    if summary.waiting:
        resume = f"fuzz run --resume --out {summary.folder}, with the same options, goes on"
        figures.add_row("not looked into", f"{summary.waiting} failing programs; {resume}")
    return Panel(figures, title="interrupted" if summary.interrupted else "campaign")


def finding_lines(findings: Sequence[Finding]) -> list[Text]:
    """One paragraph for each: what it is, what is known of it, its entry."""
    lines = [Text("findings", style="bold")] if findings else []
    for number, finding in enumerate(findings, 1):
        known = f"catches {', '.join(finding.catches)}" if finding.catches else "open on this release"
        seen = f"first seen at {_duration(finding.first_seen)}, program {finding.first_program}"
        shrunk = f"{finding.statements} statement(s) after {finding.evaluations} runs"
        lines += [
            Text(f"{number}. {finding.title}", style="red"),
            Text(f"   {finding.signature}"),
            Text(f"   {known}; {seen}; {shrunk}; {finding.times} program(s) led to it"),
            Text(f"   {finding.entry}"),
        ]
    return lines


def verdict_lines(verdict: Verdict) -> Text:
    """A verdict, its identity and its evidence."""
    head = Text(str(verdict.outcome), style=COLOURS[verdict.outcome])
    if verdict.signature is not None:
        head.append(f"  {verdict.signature}", style="bold")
    if verdict.oracle:
        head.append(f"  [{verdict.oracle}]", style="dim")
    for line in verdict.evidence:
        head.append(f"\n  {line}")
    return head


def python_source(source: str) -> RenderableType:
    return Syntax(source.strip(), "python", background_color="default", word_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table of plain text; the first column names the row and stays on one line."""
    shown = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        shown.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return shown


def outcome_text(outcome: Outcome) -> Text:
    return Text(str(outcome), style=COLOURS[outcome])


def _panel(tick: Tick, found: Sequence[Finding]) -> RenderableType:
    parts: list[RenderableType] = [Text(_status(tick))]
    share = _share_done(tick)
    if share is not None:
        parts.append(ProgressBar(total=1.0, completed=share, width=60))
    parts.extend(Text(f"  {_finding_line(finding)}", style="red") for finding in found[-8:])
    return Panel(Group(*parts), title="fuzz run", subtitle="Ctrl-C stops and keeps everything")


def _share_done(tick: Tick) -> float | None:
    if tick.limit is not None:
        return min(tick.seconds / tick.limit, 1.0)
    if tick.programs_limit:
        return min(tick.programs / tick.programs_limit, 1.0)
    return None


def _status(tick: Tick) -> str:
    if not tick.ready:
        return f"importing the stack, {tick.seconds:.0f} s"
    counts = ", ".join(f"{outcome} {tick.outcomes[outcome]}" for outcome in Outcome if tick.outcomes.get(outcome))
    parts = [
        f"{_duration(tick.seconds)}",
        f"{tick.programs} programs, {tick.rate:.2f}/s",
        counts or "no verdict yet",
        f"{tick.running}/{tick.workers} workers",
    ]
    if tick.limit is not None:
        parts.append(f"{_duration(max(tick.limit - tick.seconds, 0.0))} left")
    if tick.doing:
        parts.append(tick.doing)
    return " | ".join(parts)


def _finding_line(finding: Finding) -> str:
    catches = f" (catches {', '.join(finding.catches)})" if finding.catches else ""
    return f"{finding.title}{catches}: {finding.statements} statement(s), {finding.entry}"


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.0f} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
