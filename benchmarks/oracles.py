"""What our oracles and the comparison rules of other fuzzers say of the same programs.

Programs: the witness of each backend fix with its defect brought back, on the simulator, and the hand-written programs
of upstream's own bugs, on the CPU. The rules, each on the outputs of one compiled and one eager run:

- sum within 5 %: torchfuzz sums the output of both and compares the two numbers
- allclose 1e-2, 1e-3: the rtol and atol that NNSmith and its successors use
- dynamo same: `torch._dynamo.utils.same` with a float64 reference, as PyTorch's own benchmarks call it

An exception or a crash on the compiled side alone is seen by every rule.

    python -m benchmarks.oracles [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from backend_fixes import FIXES
from fuzzer.report.bench import markdown_table

if TYPE_CHECKING:
    from fuzzer.observation import Leaf, Observations

ROOT = Path(__file__).parents[1]
WITNESSES = ROOT / "tests" / "backend_fixes" / "witness"
UPSTREAM = ROOT / "tests" / "targets" / "upstream"

RULES = ("ours", "sum within 5 %", "allclose 1e-2, 1e-3", "dynamo same")
CRASH = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One program and where it fails."""

    name: str
    file: Path
    target: str
    reintroduce: str = ""


def subjects() -> list[Subject]:
    """Every witness, then every bug of upstream's."""
    ours = [
        Subject(name=fix.slug, file=WITNESSES / f"{fix.slug}.py", target="sim", reintroduce=fix.slug)
        for fix in FIXES
        if (WITNESSES / f"{fix.slug}.py").exists()
    ]
    theirs = [
        Subject(name=file.stem.removeprefix("bug_"), file=file, target="cpu") for file in sorted(UPSTREAM.glob("bug_*"))
    ]
    return ours + theirs


def ask(subject: Subject) -> Mapping[str, str]:
    """What each rule says, from a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.oracles", "--judge", str(subject.file)]
    command += ["--target", subject.target, "--reintroduce", subject.reintroduce]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode < 0:
        return dict.fromkeys(RULES, CRASH)
    if done.returncode:
        raise RuntimeError(f"{subject.name}: {done.stderr[-2000:]}")
    answer: Mapping[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answer


def judge_file(file: Path, target: str, slug: str) -> Mapping[str, str]:
    """What each rule says of one program, in this process."""
    from fuzzer import fixes
    from fuzzer.program import Case, Mode
    from fuzzer.targets import platform
    from fuzzer.targets.stack import set_environment

    set_environment()
    source = file.read_text()
    config: Mapping[str, Any] = {}
    if target == "sim":
        config = runpy.run_path(str(file)).get("MODE", {})
        fixes.install([fixes.find(slug)])
    run = platform(target).prepare(config.get("backend", "triton_experimental"))
    from fuzzer import oracles
    from fuzzer.targets.run import never_settled

    training = config.get("training", False) or "# training" in source
    mode = Mode(
        training=training,
        dynamic=config.get("dynamic", False),
        calls=2 if target == "cpu" else 1,
        config=tuple(config.get("config", {}).items()),
    )
    import torch

    torch.set_grad_enabled(not config.get("inference", False))
    seen = run(Case(source=source, mode=mode), lambda stage, step: None, never_settled)
    verdict = oracles.judge(seen)
    said = {RULES[0]: str(verdict.signature.kind) if verdict.signature else str(verdict.outcome)}
    failed = [one.failure for one in seen.compiled if one.failure is not None]
    if failed:
        return {**dict.fromkeys(RULES, "exception"), **said}
    rules: dict[str, Callable[[Observations], bool]] = dict(zip(RULES[1:], (sums, allclose, same), strict=True))
    return {**said, **{name: "BUG" if differs(seen) else "-" for name, differs in rules.items()}}


def _pairs(seen: Observations) -> list[tuple[Leaf, Leaf]]:
    """Outputs, eager and compiled, of the last call."""
    return list(zip(seen.eager[0].outputs, seen.compiled[-1].outputs, strict=True))


def sums(seen: Observations) -> bool:
    """Whether the sums of an output differ by more than 5 %."""
    for eager, compiled in _pairs(seen):
        one, other = eager.value.double().sum().item(), compiled.value.double().sum().item()
        if abs(one - other) / max(abs(one), abs(other), 1e-12) > 0.05:
            return True
    return False


def allclose(seen: Observations) -> bool:
    """Whether an output is not close, element by element."""
    import torch

    return not all(
        torch.allclose(eager.value.double(), compiled.value.double(), rtol=1e-2, atol=1e-3, equal_nan=True)
        for eager, compiled in _pairs(seen)
    )


def same(seen: Observations) -> bool:
    """Whether `torch._dynamo.utils.same` says that outputs differ."""
    from torch._dynamo.utils import same as is_same

    exact = [leaf.value for leaf in seen.reference.outputs]
    eager, compiled = ([leaf.value for leaf in side] for side in zip(*_pairs(seen), strict=True))
    return not is_same(eager, compiled, exact, equal_nan=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.oracles", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--target", default="sim", help=argparse.SUPPRESS)
    parser.add_argument("--reintroduce", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.judge:
        print(json.dumps(judge_file(options.judge, options.target, options.reintroduce)))
        return
    head = ("program", "on", *RULES)
    said = [(subject, ask(subject)) for subject in subjects()]
    rows = [(subject.name, subject.target, *(words[rule] for rule in RULES)) for subject, words in said]
    seen = (sum(words[rule] not in ("-", "PASS") for _, words in said) for rule in RULES)
    total = ("seen", "", *(f"{count} of {len(rows)}" for count in seen))
    table = Table(title="what each rule says of programs with a known defect")
    for name in head:
        table.add_column(name, no_wrap=name == "program")
    for row in rows:
        table.add_row(*row)
    table.add_section()
    table.add_row(*total)
    Console().print(table)
    if options.markdown:
        options.markdown.write_text(markdown_table(head, (*rows, total)))


if __name__ == "__main__":
    main(sys.argv[1:])
