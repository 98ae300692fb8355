"""Executes a kernel with Triton's own interpreter, in a forked child, checking every access against its argument.

Triton's interpreter patches `triton.language` for good, so it must not run in a process that compiles kernels.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from fuzzer.simnpu.toolchain import CompileStage, KernelCompileError, UnsupportedKernel

if TYPE_CHECKING:
    from fuzzer.simnpu.interpreter_ops import Extent
    from fuzzer.simnpu.native import Interface


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFault:
    """An access of an unmasked lane outside the storage of the argument that its address was computed from."""

    kernel: str
    argument: str
    offset: int
    """In elements from where the argument points."""
    line: int
    """In the kernel's source, counted from its `def` as 1; 0 if unknown."""
    statement: str
    store: bool
    elements: int
    """How many elements of the storage lie at and after the argument's address."""
    program: tuple[int, int, int]


class KernelMemoryError(Exception):
    """A launch touched memory that does not belong to the argument it addressed; nothing of the launch was kept."""

    def __init__(self, fault: MemoryFault) -> None:
        verb = "writes" if fault.store else "reads"
        super().__init__(
            f"{fault.kernel} {verb} {fault.argument}[{fault.offset}], which has {fault.elements} elements, in program "
            f"{fault.program} at line {fault.line}: {fault.statement}"
        )
        self.fault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """What stopped the child, other than a fault."""

    kind: str
    message: str


class InterpretedKernel:
    """Executable form of a kernel that never leaves Python."""

    def __init__(self, *, source: Any, interface: Interface) -> None:
        self._source = source
        self._names, self._types = interface.names, interface.types
        self._constants = dict(interface.constants)

    def launch(self, grid: tuple[int, int, int], values: Sequence[Any], order: int = 0) -> None:
        """Run every program of the grid in a child process and take over what it wrote.

        Raises KernelMemoryError for an access outside an argument, UnsupportedKernel for what the interpreter lacks,
        KernelCompileError at stage EXECUTE for a `tl.assume` that does not hold or a child that died.
        """
        from fuzzer.simnpu.interpreter_ops import extent_of

        extents = [
            extent_of(name, value)
            for name, kind, value in zip(self._names, self._types, values, strict=True)
            if kind.startswith("*") and value is not None
        ]
        storages = sorted({(extent.begin, extent.end) for extent in extents})
        shared = mmap.mmap(-1, max(1, sum(end - begin for begin, end in storages)))
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            self._child(grid, values, order, extents, storages, shared, reader, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        self._judge(answer, status)
        _copy(storages, shared, to_memory=True)
        shared.close()

    def _judge(self, answer: bytes, status: int) -> None:
        name = self._source.fn.__name__
        if not answer:
            code = os.waitstatus_to_exitcode(status)
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            raise KernelCompileError(
                stage=CompileStage.EXECUTE, kernel=name, tool="interpreter", origin=f"interpreter: {how}", message=how
            )
        result = pickle.loads(answer)
        if isinstance(result, MemoryFault):
            raise KernelMemoryError(result)
        if isinstance(result, _Failure):
            origin = f"interpreter: {result.kind}"
            if result.kind == "AssertionError":
                raise KernelCompileError(
                    stage=CompileStage.EXECUTE, kernel=name, tool="interpreter", origin=origin, message=result.message
                )
            raise UnsupportedKernel(kernel=name, tool="interpreter", origin=origin, message=result.message)

    def _child(
        self,
        grid: tuple[int, int, int],
        values: Sequence[Any],
        order: int,
        extents: Sequence[Extent],
        storages: Sequence[tuple[int, int]],
        shared: mmap.mmap,
        reader: int,
        writer: int,
    ) -> NoReturn:
        status = 1
        try:
            os.close(reader)
            result = self._interpret(grid, values, order, extents)
            if result is None:
                _copy(storages, shared, to_memory=False)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(result, pipe)
            status = 0
        finally:
            os._exit(status)

    def _interpret(
        self, grid: tuple[int, int, int], values: Sequence[Any], order: int, extents: Sequence[Extent]
    ) -> MemoryFault | _Failure | None:
        from fuzzer.simnpu.interpreter_ops import CheckedBuilder, OutsideArgument, argument_handle, take_over_triton

        builder = CheckedBuilder(extents)
        function, file, first_line = take_over_triton(self._source.fn, builder)
        arguments: dict[str, Any] = dict(self._constants)
        for name, kind, value in zip(self._names, self._types, values, strict=True):
            arguments[name] = argument_handle(name, kind, value)
        builder.set_grid_dim(*grid)
        programs = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
        program = (0, 0, 0)
        try:
            for program in reversed(programs) if order else programs:
                builder.set_grid_idx(*program)
                function(**arguments)
        except Exception as error:
            outside: BaseException = error
            while outside.__cause__ is not None:
                outside = outside.__cause__
            if not isinstance(outside, OutsideArgument):
                return _Failure(kind=type(outside).__name__, message=str(outside)[:2000])
            extent = builder.extents[outside.argument]
            line, statement = _place(error, file, first_line, self._source.fn.src)
            return MemoryFault(
                kernel=self._source.fn.__name__,
                argument=extent.name,
                offset=(outside.address - extent.address) // extent.element,
                line=line,
                statement=statement,
                store=outside.store,
                elements=(extent.end - extent.address) // extent.element,
                program=program,
            )
        return None


def _place(error: BaseException, file: str, first_line: int, source: str) -> tuple[int, str]:
    """Line of the kernel, from its `def`, that an exception passed through last, and the text of that line."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno - first_line + 1
        trace = trace.tb_next
    lines = source.splitlines()
    return line, lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _copy(storages: Sequence[tuple[int, int]], shared: mmap.mmap, *, to_memory: bool) -> None:
    """Move the arguments' storages from the shared mapping to their place in memory, or back."""
    if not storages:
        return
    base = ctypes.addressof(ctypes.c_char.from_buffer(shared))
    for begin, end in storages:
        target, origin = (begin, base) if to_memory else (base, begin)
        ctypes.memmove(target, origin, end - begin)
        base += end - begin
