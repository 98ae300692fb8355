"""What a fork server does once so that its children need not: imports at first use, probes at first use."""

from __future__ import annotations

import importlib

from fuzzer.campaign.child import Judge
from fuzzer.program import Case, FuzzerError
from fuzzer.verdict import Outcome

FORKS_AFTER_USE = frozenset({"sim", "cpu"})
"""Targets whose compiled code may run before the fork. A device's context does not survive it."""

MODULES = ("fuzzer.generators", "fuzzer.source", "torch.testing")
"""What a child would import by itself."""

PROGRAM = """\
import torch


def inputs():
    return torch.ones(8, 8), torch.arange(8)


def program(x, i):
    y = x[i].masked_fill(x > 2, 0)
    v = y.sum().item()
    z = y.softmax(1) * (1 if v > 0 else 2)
    return z.sum(0), z.permute(1, 0).clone(), (i + 1).to(torch.float32)
"""
"""Forward only: the first backward pass starts threads, and a process with threads must not fork."""


def warm_up(target: str, judge: Judge) -> None:
    """Three times the programs per second, measured on the simulator. Raises FuzzerError if even this does not run."""
    for module in MODULES:
        importlib.import_module(module)
    if target not in FORKS_AFTER_USE:
        return
    _compile_for_the_cpu()
    verdict = judge(Case(source=PROGRAM), lambda stage, detail: None).verdict
    if verdict.outcome in (Outcome.UNSUPPORTED, Outcome.INVALID):
        raise FuzzerError(f"target {target} cannot run a small program: {'; '.join(verdict.evidence)}")


def _compile_for_the_cpu() -> None:
    """What a program computes from `.item()` stays on the CPU, and the first of it probes the C++ compiler for long."""
    import torch

    torch.compile(lambda x: x + 1)(torch.ones(8))
    torch._dynamo.reset()
