"""Programs that misbehave for real: what they do happens while they are compiled, as far as the fuzzer can tell."""

from __future__ import annotations

from fuzzer.program import Case

MISBEHAVING = """\
import os
import signal
import sys
import time

import torch


@torch._dynamo.disable
def misbehave():
    {deed}


def inputs():
    return (torch.ones(4),)


def program(x):
    if torch.compiler.is_compiling():
        misbehave()
    return x * 2
"""

HONEST = """\
import torch


def inputs():
    return (torch.arange(12.0).reshape(3, 4),)


def program(x):
    return x.sum(0), x * 2
"""

PARSED = """\
import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.randn((3, 4), generator=seeded(1))
    return (x0,)


def program(x0):
    v0 = x0 + x0
    return v0
"""
"""A program in the words of `fuzzer.source`."""

WRONG = """\
import torch


def inputs():
    return (torch.arange(12.0).reshape(3, 4),)


def program(x):
    if torch.compiler.is_compiling():
        return x * 3
    return x * 2
"""
"""A program whose compiled result differs from eager's, with no defect of any compiler."""


def misbehaving(deed: str) -> Case:
    """A program that does something while it is compiled."""
    return Case(source=MISBEHAVING.format(deed=deed))
