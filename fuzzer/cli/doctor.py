"""`fuzz doctor`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass

import click

from fuzzer.cli import options

PROBE = """
import json, os
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
import torch
if {target!r} == "npu":
    import torch_npu
    device = torch.npu
else:
    device = torch.cuda
print(json.dumps([device.get_device_name(i) for i in range(device.device_count())] if device.is_available() else []))
"""
"""Asks a real device's library in a process of its own: it may not come back."""

PROBE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that a target needs."""

    name: str
    found: str
    needed: str
    ok: bool
    remedy: str


@click.command(name="doctor")
@options.target
@options.as_json
def command(target: str, as_json: bool) -> int:
    """What a target needs, what is there, and how to get what is missing. Exit status 2 if something is."""
    from rich.console import Console
    from rich.text import Text

    from fuzzer.report.terminal import table

    lines = requirements(target)
    if as_json:
        for line in lines:
            click.echo(json.dumps(asdict(line)))
    else:
        rows = [
            (
                line.name,
                line.found,
                line.needed,
                Text("ok", style="green") if line.ok else Text(line.remedy, style="red"),
            )
            for line in lines
        ]
        console = Console()
        console.print(table(f"target {target}", ("what", "found", "needed", "state"), rows))
        missing = sum(not line.ok for line in lines)
        console.print(f"{missing} thing(s) missing" if missing else f"target {target} is ready", highlight=False)
    return 0 if all(line.ok for line in lines) else 2


def requirements(target: str) -> tuple[Line, ...]:
    """What a target needs. Does not import torch into this process."""
    if target == "sim":
        from fuzzer.simnpu import environment

        return tuple(Line(**asdict(requirement)) for requirement in environment.check())
    lines = [_package("torch", "2.9 or later", "pip install torch")]
    if target == "cpu":
        return (*lines, _compiler())
    if target == "npu":
        lines += [
            _package("torch_npu", "the version of torch", "pip install torch_npu, of the same version as torch"),
            _package("triton-ascend", "the one that torch_npu asks for", "pip install triton-ascend"),
        ]
    if all(line.ok for line in lines):
        lines.append(_device(target))
    return tuple(lines)


def _package(name: str, needed: str, remedy: str) -> Line:
    from importlib import metadata

    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Line(name=name, found="missing", needed=needed, ok=False, remedy=remedy)
    return Line(name=name, found=found, needed=needed, ok=True, remedy="")


def _compiler() -> Line:
    import os

    name = os.environ.get("CXX", "g++")
    found = shutil.which(name)
    remedy = "" if found else "install g++, or set CXX"
    return Line(name="C++ compiler", found=found or "missing", needed="g++", ok=found is not None, remedy=remedy)


def _device(target: str) -> Line:
    name = f"{target} device"
    try:
        probe = subprocess.run(
            [sys.executable, "-c", PROBE.format(target=target)], capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        remedy = f"its library did not answer within {PROBE_SECONDS:.0f} s: look at the driver"
        return Line(name=name, found="no answer", needed="one", ok=False, remedy=remedy)
    if probe.returncode != 0:
        last = (probe.stderr.strip().splitlines() or [f"status {probe.returncode}"])[-1]
        return Line(name=name, found=f"fails: {last}", needed="one", ok=False, remedy="repair it, or use --target sim")
    devices = json.loads(probe.stdout.strip().splitlines()[-1])
    if not devices:
        return Line(name=name, found="none", needed="one", ok=False, remedy="use --target sim or --target cpu")
    return Line(name=name, found=", ".join(devices), needed="one", ok=True, remedy="")
