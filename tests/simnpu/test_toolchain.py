"""Every stage of the chain can fail, and says where and why in a name that is stable."""

# Triton kernels are not Python: their parameters have no Python types.
# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from fuzzer.simnpu import lowering, toolchain
from fuzzer.simnpu.kernel_cache import KernelCache, cache_key
from fuzzer.simnpu.toolchain import CompileStage, KernelCompileError, UnifiedBufferOverflow, UnsupportedKernel
from tests.simnpu.host_kernels import compile_on_host, compiler

pytestmark = pytest.mark.sim

ONE = (1, 1, 1)


def failure_of(call: Any) -> KernelCompileError:
    with pytest.raises(Exception) as raised:  # noqa: PT011  # whatever Triton raises; the link to ours is the point
        call()
    found = toolchain.find_compile_error(raised.value)
    assert found is not None
    return found


@triton.jit
def undefined_name(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), r0_0numel)  # type: ignore[name-defined]  # noqa: F821


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, index < n)
    tl.store(y + index, value * 2, index < n)


@triton.jit
def external(x, y):
    tl.store(y, tl.extra.cann.libdevice.tanh(tl.load(x)))


def test_an_undefined_name_in_a_kernel_fails_in_the_frontend_by_the_type_of_its_innermost_cause() -> None:
    error = failure_of(lambda: compile_on_host(undefined_name, {"x": "*fp32"}, {"BLOCK": 16}))
    assert error.stage is CompileStage.FRONTEND
    assert error.kernel == "undefined_name"
    assert error.origin.startswith("NameError: ")
    assert "r0_0numel" in error.message


def test_a_frontend_failure_is_raised_as_triton_raises_it() -> None:
    from triton.compiler.errors import CompilationError

    with pytest.raises(CompilationError):
        compile_on_host(undefined_name, {"x": "*fp32"}, {"BLOCK": 16})


def test_a_tile_larger_than_the_unified_buffer_is_refused_with_both_sizes() -> None:
    error = failure_of(
        lambda: compile_on_host(doubled, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 65536}, fit_check=True)
    )
    assert isinstance(error, UnifiedBufferOverflow)
    assert error.stage is CompileStage.HIVM
    assert error.needed_bits > error.available_bits > 0


def test_a_kernel_that_fits_is_compiled_and_a_second_time_taken_from_the_cache() -> None:
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32"}
    compile_on_host(doubled, signature, {"BLOCK": 64}, fit_check=True)
    start = time.perf_counter()
    kernel = compile_on_host(doubled, signature, {"BLOCK": 64}, fit_check=True)
    x, y = torch.arange(64.0), torch.zeros(64)
    kernel[ONE](x, y, 64)
    assert torch.equal(y, x * 2)
    key_tools = compiler(fit_check=True).tools
    assert time.perf_counter() - start < 2.0
    assert "ascendnpu-ir=" in key_tools.version


def test_the_verdict_of_the_fit_check_comes_from_the_cache_without_running_the_tool(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    ran: list[str] = []

    def refuse(module: Any, metadata: Any) -> bytes:
        ran.append(str(module))
        raise subprocess.CalledProcessError(1, "bishengir-compile", stderr=b"x.mlir:1:2: error: no 7")

    compilation = toolchain.Compilation(
        kernel="k",
        stages={"ttadapter": None, "npubin": refuse},
        metadata={"target": "t"},
        options="o",
        module=None,
        context=None,
    )
    tools = compiler().tools
    for _ in range(2):
        with pytest.raises(KernelCompileError, match="no 7") as raised:
            toolchain.fit(compilation, "linalg", tools, cache)
        assert raised.value.origin == "bishengir-compile: no"
    assert ran == ["linalg"]


def test_a_missing_host_function_is_unsupported_and_not_the_end_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzzer.simnpu import native

    monkeypatch.setattr(native, "bind_device_math", lambda text: text)
    monkeypatch.setattr(native, "load_code", lambda cache, key: None)
    monkeypatch.setattr(native, "store_code", lambda cache, key, code: None)
    error = failure_of(lambda: compile_on_host(external, {"x": "*fp32", "y": "*fp32"}))
    assert isinstance(error, UnsupportedKernel)
    assert error.stage is CompileStage.LOWERING
    assert error.origin == "linker: __hmf_tanhf"


def test_linalg_that_cannot_be_lowered_is_unsupported() -> None:
    with pytest.raises(UnsupportedKernel, match="no defect of the product"):
        lowering.lower("k", "module { not MLIR }", compiler().tools)


STRIDES = (
    "<unknown>:0: error: strides must not be zero\n"
    "tool: /src/mlir/IR/StorageUniquerSupport.h:180: static ConcreteT mlir::detail::StorageUserBase<mlir::StridedLayout"
    "Attr, mlir::Attribute>::get(MLIRContext *, Args &&...) [ConcreteT = mlir::StridedLayoutAttr, BaseT = mlir::Attrib"
    "ute, Args = <long, llvm::ArrayRef<long>>]: "
    "Assertion `succeeded( ConcreteT::verifyInvariants(getDefaultDiagnosticEmitFn(ctx), args...))' failed.\n"
)
CAST = (
    "tool: /src/Casting.h:566: decltype(auto) llvm::cast(From &) [To = mlir::RankedTensorType, From = mlir::Type]: "
    'Assertion `isa<To>(Val) && "cast<Ty>() argument of incompatible type!"\' failed.'
)
UNREACHABLE = "unknown kind 7 of 'hivm.hir.vadd'\nUNREACHABLE executed at /src/a.cpp:12!\n"


@pytest.mark.parametrize(
    ("returncode", "stderr", "name"),
    [
        (1, 'a.mlir:3:5: error: "x.y"(%12) has 3 uses of tensor<1x4xf32>', "tool: has uses of tensor"),
        (1, "/tmp/a:1:2: error: 'linalg.reduce' op wants i64, not <2xf<8>>\nb", "tool: linalg.reduce op wants not"),
        (1, "/tmp/a:1:2: error: cannot lower triton_unk_fused_add_0: math.exp2", "tool: cannot lower math.exp"),
        (1, "tool: /src/a.h:180: no", "tool: tool no"),
        (-6, "PLEASE submit\nLLVM ERROR: Not implemented 17\n", "tool: SIGABRT: Not implemented"),
        (
            -6,
            "LLVM ERROR: unsupported datatype for arith::ExtFOp",
            "tool: SIGABRT: unsupported datatype for arith::ExtFOp",
        ),
        (-6, STRIDES, "tool: SIGABRT: StridedLayoutAttr::get succeeded verifyInvariants"),
        (-6, CAST, "tool: SIGABRT: cast cast argument of incompatible type"),
        (-6, "tool: a.cpp:1: void (anonymous namespace)::P::run(): Assertion `n' failed.", "tool: SIGABRT: P::run n"),
        (-6, UNREACHABLE, "tool: SIGABRT: unknown kind of hivm.hir.vadd"),
        (-6, "UNREACHABLE executed at /src/a.cpp:12!", "tool: SIGABRT: unreachable"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'", "tool: SIGABRT: std::bad_alloc"),
        (-11, "", "tool: SIGSEGV"),
        (3, "", "tool: exit status"),
    ],
)
def test_a_failure_is_named_without_what_differs_between_kernels(returncode: int, stderr: str, name: str) -> None:
    assert toolchain.diagnose("tool", returncode, stderr) == name


def test_the_name_of_a_failure_is_short_and_made_of_names_only() -> None:
    stderr = "\n".join([STRIDES, CAST, UNREACHABLE]).replace("Assertion", "assertion")
    name = toolchain.diagnose(
        "triton-adapter-opt", -6, stderr + "LLVM ERROR: " + "much [more] \"than\" 'fits' (here) " * 9
    )
    assert len(name) <= 80
    assert re.fullmatch(r"triton-adapter-opt: SIGABRT: [A-Za-z_.: ]+", name)


def test_the_compiler_failure_is_found_behind_any_chaining() -> None:
    error = KernelCompileError(stage=CompileStage.ADAPTER, kernel="k", tool="t", origin="o", message="m")
    caused, linked, outer = ValueError(), RuntimeError(), RuntimeError()
    caused.__cause__ = error
    toolchain.attach(linked, error)
    outer.inner_exception = linked  # type: ignore[attr-defined]  # as torch's InductorError has it
    loop = ValueError()
    loop.__context__ = loop2 = KeyError()
    loop2.__context__ = loop
    assert toolchain.find_compile_error(caused) is error
    assert toolchain.find_compile_error(outer) is error
    assert toolchain.find_compile_error(loop) is None
    assert toolchain.find_compile_error(None) is None


# --- the cache ------------------------------------------------------------------------------------------------------


def test_keys_depend_on_how_the_parts_are_cut() -> None:
    assert cache_key(["ab", "c"]) != cache_key(["a", "bc"])
    assert re.fullmatch("[0-9a-f]{64}", cache_key([]))


def test_a_stored_value_comes_back_and_a_damaged_one_counts_as_absent(tmp_path: Path) -> None:
    cache, key = KernelCache(tmp_path), cache_key(["k"])
    assert cache.get(key) is None
    cache.put(key, b"value")
    assert cache.get(key) == b"value"
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.get(key) is None
    assert not path.exists()


def test_eviction_drops_the_entries_unused_for_longest(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, limit=10_000)
    keys = [cache_key([str(i)]) for i in range(20)]
    for age, key in enumerate(keys):
        cache.put(key, bytes(1000 - 32))
        path = tmp_path / key[:2] / key[2:]
        if path.exists():
            os.utime(path, (age, age))
    os.utime(tmp_path / keys[0][:2] / keys[0][2:], (1e6, 1e6))
    cache.evict()
    kept = [key for key in keys if cache.get(key) is not None]
    assert len(kept) == 8
    assert kept[0] == keys[0]
    assert kept[1:] == keys[-7:]


def _write_for_ever(directory: str) -> None:
    cache, number = KernelCache(Path(directory), limit=200_000), 0
    while True:
        number = (number + 1) % 50
        key = cache_key([str(number)])
        value = cache.get(key)
        assert value is None or value == bytes([number]) * 10_000
        cache.put(key, bytes([number]) * 10_000)


def test_processes_that_share_the_cache_and_are_killed_at_any_time_leave_it_whole(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_for_ever, args=(str(tmp_path),)) for _ in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(0.4)
    assert all(writer.is_alive() for writer in writers)
    for writer in writers:
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    cache = KernelCache(tmp_path)
    found = [cache.get(cache_key([str(number)])) for number in range(50)]
    assert any(found)
    assert all(value is None or value == bytes([number]) * 10_000 for number, value in enumerate(found))
