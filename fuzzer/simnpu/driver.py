"""Triton's driver for a device that is not there: compiles kernels with the real tools, launches them on the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
import triton
import triton.backends
import triton.compiler
import triton.compiler.compiler
from triton.backends.compiler import GPUTarget

from fuzzer.simnpu import lowering, native, record, toolchain
from fuzzer.simnpu.autotune import begin_at, install_autotune
from fuzzer.simnpu.kernel_cache import KernelCache
from fuzzer.simnpu.language import install_dialects, install_language
from fuzzer.simnpu.native import Interface, ProgramOrder
from fuzzer.simnpu.options import Executor, SimOptions
from fuzzer.simnpu.runtime.build import RUNTIME, build, cache_directory
from fuzzer.simnpu.toolchain import CompileStage, KernelCompileError


class Metadata(dict[str, Any]):
    """A compiled kernel's metadata: torch_npu reads it by attribute, Triton by key."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Executable(Protocol):
    """Something that runs a compiled kernel over a grid."""

    def launch(self, grid: tuple[int, int, int], values: list[Any], order: int) -> None:
        """Run every program in a `ProgramOrder`; `values` are the compiled function's run-time arguments."""


@dataclass(slots=True)
class _Running:
    """How kernels run from now on in this process."""

    executor: Executor = Executor.NATIVE
    order: ProgramOrder = ProgramOrder.ASCENDING


_running = _Running()


def run_kernels(
    *, executor: Executor | None = None, order: ProgramOrder | None = None, tile_config: int | None = None
) -> None:
    """Change, in this process, how kernels are executed and which configuration is tried first; None keeps a setting.

    `executor` and `tile_config` hold for kernels compiled from now on, `order` for launches. Meant for a forked
    child that inherits an installed simulator.
    """
    if executor is not None:
        _running.executor = executor
    if order is not None:
        _running.order = order
    if tile_config is not None:
        begin_at(tile_config)


class HostKernel:
    """What `triton.compile` returns: the interface of Triton's CompiledKernel, as far as its callers use it."""

    launch_enter_hook = None
    launch_exit_hook = None
    function = 1
    n_regs = 0
    n_spills = 0
    shared = 1

    def __init__(
        self,
        *,
        source: Any,
        metadata: Mapping[str, Any],
        asm: Mapping[str, str],
        interface: Interface,
        executable: Executable,
    ) -> None:
        self.src = source
        self.name = source.fn.__name__
        self.asm = dict(asm)
        self.metadata = Metadata(metadata)
        self.packed_metadata = {"kernel_name": self.name, "hash": metadata["hash"], "debug": metadata["debug"]}
        self.hash = metadata["hash"]
        self.num_warps = metadata["num_warps"]
        self._executable = executable
        self._positions = interface.positions

    def _init_handles(self) -> None:
        """Nothing to load: the kernel is executable from the start."""

    def launch_metadata(self, *_: Any) -> None:
        """No profiler hook reads it."""

    def run(
        self, grid_0: int, grid_1: int, grid_2: int, stream: Any, function: Any, metadata: Any, launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None, exit_hook: Callable[[Any], None] | None, *values: Any
    ) -> None:  # fmt: skip
        """Launch, with the argument order of triton-ascend's launcher; the device is synchronous."""
        if enter_hook is not None:
            enter_hook(launch_metadata)
        grid = (int(grid_0), int(grid_1), int(grid_2))
        kept = [values[position] for position in self._positions]
        order = int(_running.order)
        _name_for_faults(self.name)
        try:
            record.launched(self.name, grid, lambda: self._executable.launch(grid, kept, order))
        finally:
            _name_for_faults("")
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
        def launch(*values: Any, stream: Any = None) -> None:
            self.run(*grid, stream, self.function, self.packed_metadata, None, None, None, *values)

        return launch


class _FaultName:
    """Calls the stand-in's `simnpu_set_kernel`, so that its fault handler can name the running kernel."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    @cached_property
    def _set(self) -> Callable[[bytes], None]:
        function = getattr(ctypes.CDLL(None), "simnpu_set_kernel", None)
        if function is None:  # the stand-in is not loaded: a kernel tested on plain host memory
            return lambda name: None
        function.argtypes, function.restype = [ctypes.c_char_p], None
        return function  # type: ignore[no-any-return]  # ctypes functions are untyped

    def __call__(self, name: str) -> None:
        self._set(self._known.setdefault(name, name.encode()))


_name_for_faults = _FaultName()


class KernelCompiler:
    """Replaces `triton.compile`: the released chain, then host code."""

    def __init__(self, options: SimOptions) -> None:
        folder = cache_directory()
        self.options = options
        self.tools = toolchain.locate_tools(folder)
        self.cache = KernelCache(folder / "kernels")
        self.runtime = build_runtime()
        self._versions = f"{self.tools.version} {lowering.VERSION} {self.runtime.parent.name}"

    def __call__(self, src: Any, target: Any = None, options: Any = None) -> HostKernel:
        """Compile one kernel in one configuration.

        Raises what Triton raises on a device (CompilationError, MLIRCompilationError), from which
        `toolchain.find_compile_error` gives the KernelCompileError; or UnsupportedKernel, which is ours.
        """
        seconds: dict[str, float] = {}
        asm: dict[str, str] = {}
        status = "stopped"
        try:
            kernel = self._compile(src, dict(options or {}), seconds, asm)
            status = "ok"
            return kernel
        except KernelCompileError as error:
            status = f"{error.stage} {error.origin}"
            if isinstance(error, toolchain.UnsupportedKernel):
                raise
            raise _as_product_raises_it(error) from error.__cause__
        finally:
            interface = Interface.of(src)
            record.add_kernel(
                lambda: record.KernelRecord(
                    name=src.fn.__name__,
                    source=str(src.fn.src),
                    signature=dict(zip(interface.names, interface.types, strict=True)),
                    config={name: interface.constants.get(name) for name in interface.constexprs},
                    stage_seconds=dict(seconds),
                    status=status,
                    ttir=asm.get("ttir", ""),
                    linalg=asm.get("ttadapter", ""),
                )
            )

    def _compile(self, src: Any, options: dict[str, Any], seconds: dict[str, float], asm: dict[str, str]) -> HostKernel:
        name = src.fn.__name__
        interface = Interface.of(src)
        target = GPUTarget("npu", self.options.soc, 0)
        with record.timed(name, CompileStage.FRONTEND.value, seconds, str(src.fn.src)):
            compilation = toolchain.frontend(src, target, options)
            asm["ttir"] = str(compilation.module)
        if compilation.pure_simt:
            with record.timed(name, CompileStage.HIVM.value, seconds):
                toolchain.fit(compilation, compilation.module, self.tools, self.cache)
            raise toolchain.UnsupportedKernel(
                kernel=name, tool="driver", origin="driver: pure SIMT", message="a pure SIMT kernel has no Linalg form"
            )
        with record.timed(name, CompileStage.ADAPTER.value, seconds):
            asm["ttadapter"] = linalg = toolchain.adapt(compilation)
        if self.options.fit_check:
            with record.timed(name, CompileStage.HIVM.value, seconds):
                toolchain.fit(compilation, linalg, self.tools, self.cache)
        if _running.executor is Executor.INTERPRETER:
            from fuzzer.simnpu.interpreter import InterpretedKernel

            executable: Executable = InterpretedKernel(source=src, interface=interface)
        else:
            executable = self._native(name, linalg, interface, seconds)
        return HostKernel(
            source=src,
            metadata=_complete(compilation.metadata),
            asm=asm,
            interface=interface,
            executable=executable,
        )

    def _native(self, name: str, linalg: str, interface: Interface, seconds: dict[str, float]) -> native.NativeKernel:
        key = native.code_key(linalg, self._versions)
        code = native.load_code(self.cache, key)
        if code is None:
            with record.timed(name, CompileStage.LOWERING.value, seconds):
                llvm_ir = lowering.lower(name, linalg, self.tools)
            with record.timed(name, "jit", seconds):
                code = native.build_code(name, lowering.entry_point(linalg), llvm_ir)
            native.store_code(self.cache, key, code)
        with record.timed(name, "jit", seconds):
            return native.NativeKernel(kernel=name, native=code, signature=interface.types, runtime=self.runtime)


def build_runtime() -> Path:
    """The host's device-math library, compiled on first use."""
    return build("libsimnpu_kernels.so", [RUNTIME / "hmf.c"], flags=["-ffp-contract=off", "-lm"])


def _as_product_raises_it(error: KernelCompileError) -> BaseException:
    """The exception that Triton raises for this failure on a device, knowing what it stands for."""
    from triton.compiler.errors import MLIRCompilationError

    if error.stage is CompileStage.FRONTEND and error.__cause__ is not None:
        raised: BaseException = error.__cause__
    else:
        stage = "ConvertTritonIRToLinalgIR" if error.stage is CompileStage.ADAPTER else "ConvertLinalgRToBinary"
        raised = MLIRCompilationError(stage, error.message)
    toolchain.attach(raised, error)
    return raised


def _complete(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with the fields that the device's last step would have filled in."""
    defaults = {"shared": 1, "required_ub_bits": 0, "mix_mode": "aiv", "cluster_dims": (1, 1, 1), "tensor_kinds": []}
    return {**defaults, **metadata}


class HostDriver:
    """Triton's active driver: one device of the simulated kind."""

    options = SimOptions()
    """Set by `install_kernels`; Triton makes instances of the class itself."""

    class utils:
        """The queries that Triton forwards to its driver's utilities."""

        @staticmethod
        def get_device_properties(device: int) -> dict[str, int]:
            """Core counts of any device; they are all alike."""
            options = HostDriver.options
            return {"max_shared_mem": 1, "num_aicore": options.cube_cores, "num_vectorcore": options.vector_cores}

        @staticmethod
        def get_aicore_num() -> int:
            """Cube cores."""
            return HostDriver.options.cube_cores

        @staticmethod
        def get_aivector_core_num() -> int:
            """Vector cores: the programs of a grid run on these."""
            return HostDriver.options.vector_cores

    launcher_cls = None

    @classmethod
    def is_active(cls) -> bool:
        """Always: it is only installed where it is wanted."""
        return True

    def get_current_target(self) -> Any:
        """What kernels are compiled for."""
        return GPUTarget("npu", self.options.soc, 0)

    def get_current_device(self) -> int:
        """Index of torch_npu's current device."""
        return int(torch.npu.current_device())  # type: ignore[attr-defined]  # added by torch_npu

    def set_current_device(self, device: int) -> None:
        """Forwarded to torch_npu."""
        torch.npu.set_device(device)  # type: ignore[attr-defined]  # added by torch_npu

    def get_current_stream(self, device: int | None = None) -> int:
        """Streams are synchronous; there is one."""
        return 0

    def get_device_interface(self) -> Any:
        """The module that stands where `torch.cuda` would."""
        return torch.npu  # type: ignore[attr-defined]  # added by torch_npu


def install_kernels(options: SimOptions) -> None:
    """Make Triton and torch_npu compile and launch kernels on the host.

    Call it after torch_npu is imported and before torch_npu._inductor is. Raises SimulatorError.
    """
    install_language()
    install_dialects()
    compiler = KernelCompiler(options)
    toolchain.adopt_tools(compiler.tools, options.soc)
    _poison_tiles(compiler.runtime, options.poison)
    HostDriver.options = options
    triton.runtime.driver.set_active(HostDriver())
    backend = triton.backends.backends["ascend"]
    triton.backends.backends["ascend"] = type(backend)(backend.compiler, HostDriver)
    for module in (triton, triton.compiler, triton.compiler.compiler):
        module.compile = compiler
    import torch.utils._triton as torch_triton

    for name in ("has_triton", "has_triton_package"):
        setattr(torch_triton, name, lambda *_, **__: True)
    run_kernels(executor=options.executor, tile_config=options.tile_config)
    install_autotune()


def _poison_tiles(runtime: Path, byte: int) -> None:
    ctypes.CDLL(str(runtime)).simnpu_tile_poison(byte)
