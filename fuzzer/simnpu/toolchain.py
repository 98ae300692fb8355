"""From a Triton kernel to host object code: each stage of the real compiler chain as one function.

Frontend, `triton-adapter-opt` and `bishengir-compile` are the released tools, called the way triton-ascend calls
them; only what follows (Linalg to LLVM to the host) is this project's.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from fuzzer.simnpu.kernel_cache import KernelCache, cache_key
from fuzzer.simnpu.options import SimulatorError


class CompileStage(str, Enum):
    """Where in the chain a kernel is."""

    FRONTEND = "frontend"
    """Triton source to TTIR, in Python and libtriton."""
    ADAPTER = "adapter"
    """TTIR to Linalg, `triton-adapter-opt`."""
    HIVM = "hivm"
    """Linalg to the device's instructions, `bishengir-compile`: tells whether the kernel fits."""
    LOWERING = "lowering"
    """Linalg to host code. A failure here is this project's, not the product's."""
    EXECUTE = "execute"

    def __str__(self) -> str:
        return self.value


class KernelCompileError(Exception):
    """A compiler refused, or crashed on, a kernel."""

    def __init__(self, *, stage: CompileStage, kernel: str, tool: str, origin: str, message: str) -> None:
        super().__init__(f"{kernel}: {stage} failed in {tool} ({origin}): {message.strip()[:2000]}")
        self.stage = stage
        self.kernel = kernel
        self.tool = tool
        self.origin = origin
        """Stable machine name: exception type and function, or tool, signal and the names in its last words."""
        self.message = message


class UnifiedBufferOverflow(KernelCompileError):
    """The tile does not fit into the unified buffer: this configuration dies on the device too."""

    def __init__(self, *, kernel: str, message: str, needed_bits: int, available_bits: int) -> None:
        super().__init__(
            stage=CompileStage.HIVM,
            kernel=kernel,
            tool="bishengir-compile",
            origin="bishengir-compile: ub overflow",
            message=message,
        )
        self.needed_bits = needed_bits
        self.available_bits = available_bits


class UnsupportedKernel(KernelCompileError):
    """The product compiled the kernel, but this host stand-in cannot execute it. No verdict on the product."""

    def __init__(self, *, kernel: str, tool: str, origin: str, message: str) -> None:
        super().__init__(
            stage=CompileStage.LOWERING,
            kernel=kernel,
            tool=tool,
            origin=origin,
            message=f"not supported by the host stand-in, no defect of the product: {message}",
        )


_LINK = "simnpu_compile_error"


def attach(exception: BaseException, error: KernelCompileError) -> None:
    """Remember on the product's own exception which compiler failure it stands for."""
    vars(exception)[_LINK] = error


def find_compile_error(exception: BaseException | None) -> KernelCompileError | None:
    """The compiler failure behind an exception of torch, torch_npu or Triton, following every kind of chaining."""
    seen: set[int] = set()
    pending = [exception]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, KernelCompileError):
            return current
        pending.extend((current.__context__, current.__cause__))
        for name in (_LINK, "inner_exception"):
            linked = getattr(current, name, None)
            if isinstance(linked, BaseException):
                pending.append(linked)
    return None


# --- naming failures ------------------------------------------------------------------------------------------------

_UB_OVERFLOW = re.compile(r"ub overflow, requires (\d+) bits while (\d+) bits")
_ASSERTION = re.compile(r":\d+: (?P<function>.*): Assertion [`'](?P<claim>.*)' failed")
_LAST_WORDS = (
    re.compile(r"LLVM ERROR: (.*)"),
    re.compile(r"terminate called after throwing an instance of '([^']+)'"),
    re.compile(r"(?:(.*)\n)?UNREACHABLE executed"),
    re.compile(r"\berror: (.*)"),
)
"""What a tool says when it ends, the most telling first."""
_NO_NAMES = (
    (re.compile(r'"[^"]*"|\S*/\S*|[%@#!^][\w.$-]+|\btriton_\w+'), " "),  # generic operations, paths, values, kernels
    (re.compile(r"\b([a-z]{0,2}\d[\w.]*)"), " "),  # numbers and scalar types
    (re.compile(r"\d+"), ""),
)
_ORIGIN_LENGTH = 80


def names_in(text: str) -> list[str]:
    """The words of a diagnostic that do not differ between two kernels: no paths, values, shapes, types or numbers."""
    text = _without_brackets(text)
    for pattern, replacement in _NO_NAMES:
        text = pattern.sub(replacement, text)
    return re.findall(r"[A-Za-z_](?:(?:[.:]|::)?\w+)*", text)


def _without_brackets(text: str) -> str:
    """A text without what stands between angle brackets, at any depth."""
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def _asserting_function(signature: str) -> str:
    """`Class::function` of what __PRETTY_FUNCTION__ gives; the class is the one derived, where one derives from it."""
    plain = re.sub(r"\(anonymous \w+\)::|decltype\(auto\)", "", _without_brackets(signature))
    found = re.search(r"([\w:~]+)\(", plain)
    *scopes, function = found[1].split("::") if found else [""]
    derived = re.search(r"\bConcrete\w+ = ([\w:]+)", signature)
    if derived is not None:
        scopes = derived[1].split("::")
    return "::".join([*(scope for scope in scopes[-1:] if scope[:1].isupper()), function])


def _last_words(stderr: str) -> list[str]:
    """The names in what a tool said when it ended."""
    assertion = _ASSERTION.search(stderr)
    if assertion is not None:
        message = re.search(r'"([^"]*)"', assertion["claim"])
        claim = names_in(message[1] if message else assertion["claim"])
        return [_asserting_function(assertion["function"]), *(name.rpartition("::")[2] for name in claim)]
    for pattern in _LAST_WORDS:
        if (found := pattern.search(stderr)) is not None:
            return names_in(found[1] or "unreachable")
    return names_in(stderr.strip().partition("\n")[0])


def diagnose(tool: str, returncode: int, stderr: str) -> str:
    """Name of a tool's failure, the same each time and for every kernel that fails in this way.

    Made of the signal, if the exit status is one (negative), and of names in what the tool printed, 80 characters at
    most.
    """
    origin = f"{tool}: {signal.Signals(-returncode).name}" if returncode < 0 else tool
    separator = ": "
    for name in _last_words(stderr) or ([] if returncode < 0 else ["exit", "status"]):
        if len(origin) + len(separator) + len(name) > _ORIGIN_LENGTH:
            break
        origin, separator = f"{origin}{separator}{name}", " "
    return origin


def exception_origin(exception: BaseException) -> str:
    """Type of the innermost cause and the function that raised it; Triton hides the cause (`from None`)."""
    while (inner := exception.__cause__ or exception.__context__) is not None:
        exception = inner
    function = ""
    trace = exception.__traceback__
    while trace is not None:
        function = trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    return f"{type(exception).__name__}: {function}" if function else type(exception).__name__


# --- the tools ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Where the released executables are, and what identifies their version."""

    ascend_bin: Path
    stub_bin: Path
    """Holds the stand-in for `hivmc`, the closed last step that `bishengir-compile` calls."""
    version: str
    """Distinguishes results of different releases in the cache."""

    @property
    def bishengir_opt(self) -> Path:
        return self.ascend_bin / "bishengir-opt"


_STUB_HIVMC = """#!/bin/sh
# Stand-in for the device's closed assembler: accepts everything and leaves an empty object, so that the exit status
# of bishengir-compile is the verdict on every step before it.
[ "$1" = --version ] && { echo "hivmc stand-in"; exit 0; }
while [ $# -gt 1 ]; do
  [ "$1" = -o ] && : > "$2.o" && : > "${2}_reloc.o"
  shift
done
exit 0
"""


def locate_tools(cache_directory: Path) -> Tools:
    """Find the wheel's executables and put the `hivmc` stand-in into `cache_directory`.

    Raises SimulatorError if ascendnpu-ir is not installed.
    """
    spec = importlib.util.find_spec("ascendnpuir")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    ascend_bin = next((Path(place) / "bin" for place in locations if (Path(place) / "bin").is_dir()), None)
    if ascend_bin is None:
        raise SimulatorError("ascendnpu-ir is not installed; pip install ascendnpu-ir==1.2.0")
    stub_bin = cache_directory / f"hivmc-{cache_key([_STUB_HIVMC])[:12]}"
    _write_executable(stub_bin / "hivmc", _STUB_HIVMC)
    versions = [f"{name}={importlib.metadata.version(name)}" for name in ("ascendnpu-ir", "triton-ascend", "llvmlite")]
    sizes = [f"{name}:{(ascend_bin / name).stat().st_size}" for name in ("bishengir-compile", "bishengir-opt")]
    return Tools(ascend_bin=ascend_bin, stub_bin=stub_bin, version=" ".join(versions + sizes))


def _write_executable(path: Path, text: str) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, path)


def adopt_tools(tools: Tools, soc: str) -> None:
    """Let triton-ascend find the tools and know the device, as a machine with CANN would."""
    import triton.backends

    path = os.environ.get("PATH", "").split(os.pathsep)
    wanted = [str(tools.stub_bin), str(tools.ascend_bin)]
    os.environ["PATH"] = os.pathsep.join(wanted + [entry for entry in path if entry not in wanted])

    class DeviceUtils:
        """The one fact that compiling takes from the device driver."""

        def get_arch(self) -> str:
            return soc

    # Triton loads a backend's modules under names of its own, so the functions' own globals are the place to edit.
    names = triton.backends.backends["ascend"].compiler.add_stages.__globals__
    names["NPUUtils"] = DeviceUtils
    for name in ("_check_bishengir_api_change", "_check_bishengir_is_regbased"):  # each runs a tool per kernel
        if not hasattr(names[name], "cache_info"):
            names[name] = functools.lru_cache(maxsize=1)(names[name])
            names[name]()  # now, so that forked children inherit the answer


# --- stages ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Compilation:
    """A kernel on its way through triton-ascend's stages."""

    kernel: str
    stages: dict[str, Any]
    metadata: dict[str, Any]
    options: Any
    module: Any
    context: Any

    @property
    def pure_simt(self) -> bool:
        """Whether the options ask for the path from TTIR straight to the device, which has no Linalg form."""
        return "ttadapter" not in self.stages


def mlir_context() -> Any:
    """An MLIR context with Triton's dialects and no threads, which a forked child would inherit dead."""
    from triton._C.libtriton import ir

    context = ir.context()
    context.disable_multithreading()
    ir.load_dialects(context)
    return context


def frontend(source: Any, target: Any, options: Mapping[str, Any]) -> Compilation:
    """Triton source to optimised TTIR. Raises KernelCompileError whose cause is Triton's own exception."""
    import triton.backends

    kernel = source.fn.__name__
    try:
        backend = triton.backends.backends["ascend"].compiler(target)
        parsed = backend.parse_options(dict(options, **source.parse_options()))
        context = mlir_context()
        backend.load_dialects(context)
        module = source.make_ir(parsed, backend.get_codegen_implementation(), backend.get_module_map(), context)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, parsed)
        metadata = {"target": target, "hash": source.hash(), **vars(parsed)}
        module = stages["ttir"](module, metadata)
    except Exception as exception:
        raise KernelCompileError(
            stage=CompileStage.FRONTEND,
            kernel=kernel,
            tool="triton",
            origin=exception_origin(exception),
            message=str(exception),
        ) from exception
    return Compilation(kernel=kernel, stages=stages, metadata=metadata, options=parsed, module=module, context=context)


def adapt(compilation: Compilation) -> str:
    """TTIR to Linalg, as text. Raises KernelCompileError."""
    try:
        linalg: str = compilation.stages["ttadapter"](compilation.module, compilation.metadata)
    except subprocess.CalledProcessError as failure:
        raise _tool_error(CompileStage.ADAPTER, compilation.kernel, "triton-adapter-opt", failure) from failure
    return linalg


_COMPILER_ENVIRONMENT = re.compile(r"(TRITON_(?!CACHE|DUMP|OVERRIDE|HOME)|ENABLE_|DISABLE_|BISHENG)\w*")
"""Variables that triton-ascend or bishengir-compile may read; folders of caches change nothing."""


def fit(compilation: Compilation, module: Any, tools: Tools, cache: KernelCache) -> None:
    """Run `bishengir-compile` up to its closed last step; `module` is the Linalg text, or TTIR if `pure_simt`.

    Raises UnifiedBufferOverflow or KernelCompileError.
    """
    environment = sorted(f"{k}={v}" for k, v in os.environ.items() if _COMPILER_ENVIRONMENT.fullmatch(k))
    arch = str(compilation.metadata["target"])
    key = cache_key(["fit", tools.version, str(module), repr(compilation.options), arch, *environment])
    stored = cache.get(key)
    if stored is None:
        returncode, stderr = 0, ""
        try:
            compilation.stages["npubin"](module, compilation.metadata)
        except subprocess.CalledProcessError as failure:
            returncode, stderr = failure.returncode, readable(failure.stderr)
        cache.put(key, json.dumps([returncode, stderr]).encode())
    else:
        returncode, stderr = json.loads(stored)
    if returncode != 0:
        refusal = subprocess.CalledProcessError(returncode, "bishengir-compile", stderr=stderr)
        raise _tool_error(CompileStage.HIVM, compilation.kernel, "bishengir-compile", refusal)


def readable(stderr: bytes | str | None) -> str:
    text = stderr.decode(errors="replace") if isinstance(stderr, bytes) else stderr or ""
    return text.split("Stack dump")[0][:20_000]


def _tool_error(
    stage: CompileStage, kernel: str, tool: str, failure: subprocess.CalledProcessError
) -> KernelCompileError:
    stderr = readable(failure.stderr)
    overflow = _UB_OVERFLOW.search(stderr)
    if overflow is not None:
        return UnifiedBufferOverflow(
            kernel=kernel, message=stderr, needed_bits=int(overflow[1]), available_bits=int(overflow[2])
        )
    origin = diagnose(tool, failure.returncode, stderr)
    return KernelCompileError(stage=stage, kernel=kernel, tool=tool, origin=origin, message=stderr or origin)
