"""Exceptions of the code under test as values: which stage failed, and a name for it that no other program changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from traceback import walk_tb
from types import FrameType

from fuzzer.observation import Failure
from fuzzer.verdict import Stage

PROGRAM_FILE = "<program "
"""How the file name of a program under test begins."""

_COMPILE_STAGES = {
    "frontend": Stage.FRONTEND,
    "adapter": Stage.ADAPTER,
    "hivm": Stage.HIVM,
    "lowering": Stage.HIVM,
    "execute": Stage.EXECUTE,
}
"""The simulator's compile stages. A failure of its own lowering is always marked unsupported."""

_BACKEND = re.compile(r"/(torch_npu/_inductor|torch/_inductor|triton)/")
_CAPTURE = ((re.compile(r"/torch/_dynamo/"), Stage.DYNAMO), (re.compile(r"/torch/_functorch/"), Stage.AOT))
_GENERATED = re.compile(r"/[a-z0-9]{2}/c[a-z0-9]{20,}\.py$")
"""A module that Inductor generated: its cache names files by a base-32 digest, in a folder of two letters."""

_PLUMBING = frozenset({"__call__", "__init__", "run", "wrapper", "_fn", "wrapped", "inner", "<lambda>", "<module>"})
"""Frames that tell nothing of where a defect is, unless there is nothing else."""

_DEVICE_COMPILER = {"ttir_to_linalg": Stage.ADAPTER, "linalg_to_bin": Stage.HIVM}
"""Steps of triton-ascend's own compiler by the beginning of their function names, for runs on a real device."""

_FRONTEND_ERRORS = frozenset(("CompilationError", "CompileTimeAssertionFailure"))
_COMPILE_ERRORS = _FRONTEND_ERRORS | {"CppCompileError", "MLIRCompilationError"}
_COMPILING = frozenset(("compile_fx_inner", "fx_codegen_and_compile", "codegen_and_compile"))

MESSAGE_LINES = 12

OUT_OF_BOUNDS = "out-of-bounds"
"""The origin of an access outside an argument, whoever notices it."""


def failure_of(error: BaseException, stage: Stage) -> Failure:
    """What an exception says. `stage` is where the program was when nothing in the traceback tells better."""
    causes = tuple(_chain(error))
    for cause in causes:
        if (told := _kernel_failure(cause)) is not None:
            return told
    root = causes[-1]
    frames = tuple(frame for cause in reversed(causes) for frame in _frames(cause))
    place, function = _place(frames)
    kind = type(root).__name__
    generated = place == "generated"
    match place:
        case "generated":
            origin = f"generated:{kind}"
            name = _undefined_name(root)
            origin += f" {name}" if name else ""
        case _:
            origin = f"{kind}:{function}" if function else kind
    return Failure(
        stage=_stage(place, function, stage, kind, compiling=_was_compiling(causes, frames), generated=generated),
        origin=origin,
        message=_message(root),
        unsupported=_is_refusal(root, frames),
        compile_error=kind in _COMPILE_ERRORS or place.startswith("device compiler"),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, and what it wraps or was raised from, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        inner = getattr(current, "inner_exception", None)
        linked = getattr(current, "simnpu_compile_error", None)
        follow = linked or inner or current.__cause__
        if follow is None and not current.__suppress_context__:
            follow = current.__context__
        current = follow if isinstance(follow, BaseException) else None


def _kernel_failure(error: BaseException) -> Failure | None:
    """The failure of a kernel or of its compilers, as the simulator tells it. Known by name: a device has none."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "KernelMemoryError" in names:
        return Failure(stage=Stage.EXECUTE, origin=OUT_OF_BOUNDS, message=_message(error), memory=True)
    if "KernelCompileError" not in names:
        return None
    stage = _COMPILE_STAGES[str(getattr(error, "stage"))]  # noqa: B009  # an attribute of a type that we do not import
    return Failure(
        stage=stage,
        origin=str(getattr(error, "origin")),  # noqa: B009
        message=_message(error),
        unsupported="UnsupportedKernel" in names,
        compile_error=stage is not Stage.EXECUTE,
    )


def _frames(error: BaseException) -> tuple[FrameType, ...]:
    return tuple(frame for frame, _ in walk_tb(error.__traceback__))


def _place(frames: tuple[FrameType, ...]) -> tuple[str, str]:
    """Which part of the stack under test the exception was raised in, and the innermost function of that part."""
    candidates: list[tuple[str, str]] = []
    for frame in reversed(frames):
        file, function = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
        if _GENERATED.search(file):
            candidates.append(("generated", function))
        elif (found := _BACKEND.search(file)) is not None:
            part = found.group(1)
            if any(function.startswith(step) for step in _DEVICE_COMPILER):
                part = "device compiler"
            candidates.append((part, function))
    if not candidates:
        for frame in reversed(frames):
            for pattern, stage in _CAPTURE:
                if pattern.search(frame.f_code.co_filename):
                    return str(stage), frame.f_code.co_name
        return "", ""
    if candidates[0][0] == "generated":
        return candidates[0]
    telling = [candidate for candidate in candidates if candidate[1] not in _PLUMBING]
    return telling[0] if telling else candidates[0]


def _stage(place: str, function: str, fallback: Stage, kind: str, *, compiling: bool, generated: bool) -> Stage:
    if fallback in (Stage.REFERENCE, Stage.EAGER):
        return fallback
    if place == "device compiler":
        return next(stage for step, stage in _DEVICE_COMPILER.items() if function.startswith(step))
    if kind in _FRONTEND_ERRORS:
        return Stage.FRONTEND
    if generated and not compiling:
        return Stage.LAUNCH
    if place in (Stage.DYNAMO, Stage.AOT):
        return Stage(place)
    if place and compiling:
        return Stage.FRONTEND if place == "triton" else Stage.INDUCTOR
    return Stage.LAUNCH if place else Stage.EXECUTE


def _was_compiling(causes: tuple[BaseException, ...], frames: tuple[FrameType, ...]) -> bool:
    wrapped = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    return bool(wrapped & {"BackendCompilerFailed", "InductorError", "LoweringException"}) or any(
        frame.f_code.co_name in ("compile_fx_inner", "fx_codegen_and_compile", "codegen_and_compile")
        for frame in frames
    )


def _is_refusal(error: BaseException, frames: tuple[FrameType, ...]) -> bool:
    """A NotImplementedError of the simulator's eager kernels, or of an operator that the device does not have."""
    if not isinstance(error, NotImplementedError) or not frames:
        return False
    innermost = frames[-1].f_code.co_filename.replace("\\", "/")
    return "/simnpu/" in innermost or "Could not run 'aten::" in str(error)


def _undefined_name(error: BaseException) -> str:
    """The undefined name of a NameError, its counters taken away: `r0_0numel` and `r1_2numel` are one defect."""
    if not isinstance(error, NameError):
        return ""
    name = error.name or next(iter(re.findall(r"name '(\w+)'", str(error))), "")
    return re.sub(r"\d+", "N", name)


def _message(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return "\n".join(
        [f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__, *lines[1:MESSAGE_LINES]]
    )
