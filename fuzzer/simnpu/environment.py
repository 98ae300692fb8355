"""What this machine must have for the stand-in to run, and what to do where it is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from fuzzer.simnpu.options import SimulatorError
from fuzzer.simnpu.runtime.build import find_compiler

INSTALL = "pip install 'npu-triton-fuzz[sim]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing the stand-in needs, and whether it is there."""

    name: str
    found: str
    """Version or place found; "missing" if there is none."""
    needed: str
    ok: bool
    remedy: str
    """What to do; empty where nothing is wrong."""


def _requirement(name: str, found: str, needed: str, ok: bool, remedy: str) -> Requirement:
    return Requirement(name=name, found=found, needed=needed, ok=ok, remedy="" if ok else remedy)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _python() -> Requirement:
    found = platform.python_version()
    ok = (3, 10) <= sys.version_info[:2] <= (3, 12) and platform.python_implementation() == "CPython"
    return _requirement("python", found, "CPython 3.10 to 3.12", ok, "create the environment with Python 3.11")


def _machine() -> Requirement:
    found = f"{platform.machine()} {platform.system()}"
    ok = platform.machine() == "x86_64" and platform.system() == "Linux"
    return _requirement("machine", found, "x86_64 Linux", ok, "use an x86-64 Linux machine or container")


def _compiler() -> Requirement:
    try:
        found = find_compiler()
    except SimulatorError as error:
        return _requirement("C compiler", "missing", "cc, gcc or clang", False, str(error).partition(": ")[2])
    return _requirement("C compiler", found, "cc, gcc or clang", True, "")


def _cuda_of_torch() -> str | None:
    """The CUDA or ROCm version that the installed torch was built for, from its version file, without an import."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    text = (Path(spec.origin).parent / "version.py").read_text()
    built = re.search(r"^(?:cuda|hip)\b[^=]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return built.group(1) if built else None


def _torch(needed: str) -> Requirement:
    found = _version("torch")
    remedy = f"pip install torch=={needed} from the CPU index of the torch project"
    if found is None:
        return _requirement("torch", "missing", f"{needed}, CPU build", False, remedy)
    device = _cuda_of_torch()
    if device is not None:
        found = f"{found} (built for GPU, {device})"
        remedy = f"torch_npu refuses to load beside a GPU build of torch: uninstall it, then {remedy}"
    ok = device is None and found.partition("+")[0] == needed
    return _requirement("torch", found, f"{needed}, CPU build", ok, remedy)


def _package(name: str, needed: str) -> Requirement:
    found = _version(name)
    ok = found is not None and (found == needed or found.startswith((needed + ".", needed + "+")))
    return _requirement(name, found or "missing", needed, ok, INSTALL)


def _numpy() -> Requirement:
    found = _version("numpy")
    ok = found is not None and int(found.partition(".")[0]) < 2
    return _requirement(
        "numpy", found or "missing", "below 2", ok, "pip install 'numpy<2' (Triton's interpreter needs it)"
    )


def _present(name: str) -> Requirement:
    found = _version(name)
    return _requirement(name, found or "missing", "any", found is not None, INSTALL)


def check() -> tuple[Requirement, ...]:
    """Every requirement of the stand-in, met or not. Imports none of the packages it looks at."""
    return (
        _python(),
        _machine(),
        _compiler(),
        _torch("2.13.0"),
        _package("torch_npu", "2.13.0"),
        _package("triton-ascend", "3.2.0"),
        _package("ascendnpu-ir", "1.2.0"),
        _package("llvmlite", "0.50"),
        _present("pybind11"),
        _numpy(),
    )


def require() -> None:
    """Raises SimulatorError naming the first requirement that is not met."""
    for requirement in check():
        if not requirement.ok:
            raise SimulatorError(
                f"{requirement.name}: found {requirement.found}, need {requirement.needed}; {requirement.remedy}"
            )
