"""Compiles C sources into a shared library, once, in a cache that any number of processes may fill at the same time."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    command = [compiler, *BASE_FLAGS, *(f"-I{path}" for path in include), f"-Wl,-soname,{name}"]
    command += [*map(str, sources), *flags]
    with _one_at_a_time(folder):
        if not library.exists():
            _compile(command, folder, library)
    return library


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Makes the folder; inside, no other process compiles for it, so that ten do not do the same work ten times."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "w")  # noqa: SIM115  # closed below; opening is what may fail
    except OSError as error:
        raise SimulatorError(f"cannot write to the cache {folder}: {error.strerror}; set XDG_CACHE_HOME") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(command: Sequence[str], folder: Path, library: Path) -> None:
    """Runs the compiler into a temporary file and renames it, so that nobody ever opens half a library."""
    handle, temporary = tempfile.mkstemp(prefix=f".{library.name}-", dir=folder)
    os.close(handle)
    try:
        done = subprocess.run([*command, "-o", temporary], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
            raise SimulatorError(
                f"{command[0]} could not build {library.name}: {lines[0].strip()} (is libc6-dev installed?)"
            )
        os.chmod(temporary, 0o755)
        os.replace(temporary, library)
    finally:
        Path(temporary).unlink(missing_ok=True)
