"""Programs per second that a target runs, and where the time goes.

Generated programs with default settings go through the real pool of workers, as in a campaign, but nothing is shrunk.
Importing the platform and one warm-up program come before the clock starts. The simulator's cache of kernels begins
empty, as it does for programs that nobody has run; `--warm` keeps the user's. Stages are wall seconds of the children,
as the verdicts tell them; `fork and wait` is what of a child's life no stage accounts for (fork, loading the program,
taking a core from the other workers). A child that dies tells no stages: its life stands in a row of its own. CPU
seconds, unlike programs per second, say the same on a machine that does other things besides.

    python -m benchmarks.throughput [--programs N] [--seed S] [--workers W] [--target sim] [--warm]
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from fuzzer.campaign.examine import versions
from fuzzer.campaign.protocol import Generate, Reply, RunCase, Settings
from fuzzer.campaign.worker import Pool
from fuzzer.corpus import Platform
from fuzzer.generators import generate
from fuzzer.report.bench import processor
from fuzzer.source import case_of

ROWS = {
    "generate": ("generate",),
    "eager and reference": ("eager", "reference"),
    "Inductor": ("inductor",),
    "Triton frontend": ("frontend",),
    "triton-adapter-opt": ("adapter",),
    "bishengir-compile": ("hivm",),
    "lower to host code": ("lowering", "jit"),
    "execute": ("execute",),
    "judge": ("judge",),
}
"""What is shown, and the stages it sums up."""
REST = "fork and wait"
DIED = "children that died"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run over a number of programs."""

    replies: tuple[Reply, ...]
    start: float
    """Seconds until the platform was imported and warm."""
    seconds: float
    """From the first program's start to the last one's end."""
    cpu: float
    """CPU seconds of the children and of everything that they started, in that time."""
    workers: int

    @property
    def per_core(self) -> float:
        """Programs per second and worker, at most one worker on a core."""
        return len(self.replies) / self.seconds / min(self.workers, len(os.sched_getaffinity(0)))

    @property
    def stages(self) -> Mapping[str, float]:
        """Seconds of all programs, by row; together the lives of all children. A row that no child told is left out."""
        spent: Counter[str] = Counter()
        told = [reply for reply in self.replies if reply.verdict.seconds]
        for reply in told:
            spent.update(dict(reply.verdict.seconds))
        rows = {row: sum(spent[stage] for stage in stages) for row, stages in ROWS.items() if spent.keys() & {*stages}}
        unknown = set(spent) - {stage for stages in ROWS.values() for stage in stages}
        if unknown:
            raise RuntimeError(f"no row for {', '.join(sorted(unknown))}")
        died = sum(reply.seconds for reply in self.replies if not reply.verdict.seconds)
        return {**rows, REST: sum(reply.seconds for reply in told) - sum(rows.values()), DIED: died}


def measure(settings: Settings, *, seed: int, programs: int, workers: int) -> Measured:
    """Runs programs 0 to `programs` - 1 of a seed."""
    begun = time.monotonic()
    with Pool(settings, workers=workers) as pool:
        pool.run([RunCase(case=case_of(generate(seed, 0)))])
        servers = [server.pid for server in pool.servers]
        ready, cpu = time.monotonic(), children_cpu(servers)
        replies = tuple(pool.run([Generate(seed=seed, index=index) for index in range(programs)]))
        seconds = time.monotonic() - ready
        return Measured(
            replies=replies, start=ready - begun, seconds=seconds, cpu=children_cpu(servers) - cpu, workers=workers
        )


def children_cpu(pids: Iterable[int]) -> float:
    """CPU seconds that the ended and reaped children of live processes used, with those of the children's own."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()  # from the third on: a name may hold anything
        ticks += int(fields[13]) + int(fields[14])  # cutime and cstime, 16 and 17 of proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def generator_rate(seed: int, programs: int) -> float:
    """Programs that the generators make per second, alone on one core."""
    begun = time.process_time()
    for index in range(programs):
        case_of(generate(seed, index))
    return programs / (time.process_time() - begun)


def report(measured: Measured, settings: Settings, rate: float) -> Iterator[Table | str]:
    """What is printed."""
    count = len(measured.replies)
    table = Table(title=f"where the time of {count} programs goes, target {settings.target}")
    for head in ("stage", "seconds", "share", "ms a program"):
        table.add_column(head, justify="left" if head == "stage" else "right")
    total = sum(measured.stages.values())
    for stage, seconds in measured.stages.items():
        table.add_row(stage, f"{seconds:.1f}", f"{seconds / total:.1%}", f"{seconds / count * 1000:.1f}")
    yield table
    if untold := ROWS.keys() - measured.stages.keys():
        named = ", ".join(row for row in ROWS if row in untold)
        yield f"not told on this target, and so part of the rows above: {named}"
    outcomes = Counter(str(reply.verdict.outcome) for reply in measured.replies)
    yield ", ".join(f"{outcome} {times}" for outcome, times in outcomes.most_common())
    yield (
        f"{count / measured.seconds:.2f} programs/s on {measured.workers} worker(s), {measured.per_core:.2f} per core; "
        f"{measured.seconds:.1f} s"
    )
    yield f"{measured.cpu / count:.3f} CPU seconds a program, {count / measured.cpu:.2f} programs a CPU second"
    yield f"generators alone: {rate:.0f} programs a CPU second"
    yield f"not counted: {measured.start:.1f} s to import the platform and run one program"
    packages = ", ".join(f"{name} {version}" for name, version in versions(Platform.of(settings.target)))
    yield f"{len(os.sched_getaffinity(0))} cores of {processor()}; Python {platform.python_version()}, {packages}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--target", default="sim")
    parser.add_argument("--warm", action="store_true", help="use the cache of kernels that is there")
    options = parser.parse_args(arguments)
    settings = Settings(target=options.target)
    with tempfile.TemporaryDirectory() as empty:
        if not options.warm:
            os.environ["XDG_CACHE_HOME"] = empty
        measured = measure(settings, seed=options.seed, programs=options.programs, workers=options.workers)
    console = Console()
    for part in report(measured, settings, generator_rate(options.seed, options.programs)):
        console.print(part, highlight=False)


if __name__ == "__main__":
    main()
