"""Compiles C sources into a shared library, once, in a cache that any number of processes may fill at the same time."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from fuzzer.simnpu.options import SimulatorError

RUNTIME = Path(__file__).parent
BASE_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")


def cache_directory() -> Path:
    """Where compiled libraries live: `$XDG_CACHE_HOME` or `~/.cache`, then `npu-triton-fuzz`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "npu-triton-fuzz"


def find_compiler() -> str:
    """Path of the C compiler: `$CC`, else `cc`, `gcc` or `clang`. Raises SimulatorError if there is none."""
    named = os.environ.get("CC")
    for name in (named,) if named else ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path is not None:
            return path
    raise SimulatorError(
        f"no C compiler found ({named or 'cc, gcc, clang'}): install gcc (apt-get install gcc libc6-dev), or set CC"
    )


@lru_cache(maxsize=8)
def _compiler_version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


def torch_npu_include() -> Path:
    """Folder of the ACL headers that the installed torch_npu ships; torch_npu is not imported."""
    spec = importlib.util.find_spec("torch_npu")
    if spec is None or spec.origin is None:
        raise SimulatorError("torch_npu is not installed: pip install torch_npu==2.13.0")
    return Path(spec.origin).parent / "include"


def torch_npu_version() -> str:
    """Version of the installed torch_npu, or "none"."""
    try:
        return importlib.metadata.version("torch_npu")
    except importlib.metadata.PackageNotFoundError:
        return "none"


def build(
    name: str,
    sources: Sequence[Path],
    *,
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
    headers: Sequence[Path] = (),
) -> Path:
    """Compiles `sources` to the shared library `name` (for example `libascendcl.so`) and gives its path.

    The library is cached under a key of its content (sources, `headers`, flags), the compiler and the version of
    torch_npu. It appears under its name in one step, so processes that start together never see half of it.

    Raises SimulatorError if there is no compiler, if it rejects the sources, or if the cache cannot be written.
    """
    compiler = find_compiler()
    key = hashlib.sha256()
    arguments = [*BASE_FLAGS, *flags]
    for part in (name, compiler, _compiler_version(compiler), torch_npu_version(), *arguments, *map(str, include)):
        key.update(part.encode() + b"\0")
    for path in (*sources, *headers):
        key.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    folder = cache_directory() / key.hexdigest()[:24]
    library = folder / name
    if library.exists():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
        os.close(handle)
    except OSError as error:
        raise SimulatorError(f"cannot write to the cache {folder}: {error.strerror}; set XDG_CACHE_HOME") from error
    command = [
        compiler,
        *BASE_FLAGS,
        *(f"-I{path}" for path in include),
        f"-Wl,-soname,{name}",
        *map(str, sources),
        *flags,
        "-o",
        temporary,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
            raise SimulatorError(f"{compiler} could not build {name}: {lines[0].strip()} (is libc6-dev installed?)")
        os.chmod(temporary, 0o755)
        os.replace(temporary, library)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return library
