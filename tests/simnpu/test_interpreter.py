"""The interpreter runs apart, gives what the native executor gives, and names an access outside its argument."""

# Triton kernels are not Python: their parameters have no Python types.
# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from fuzzer.simnpu.interpreter import KernelMemoryError, MemoryFault
from fuzzer.simnpu.options import Executor
from fuzzer.simnpu.toolchain import CompileStage, KernelCompileError, UnsupportedKernel
from tests.simnpu.host_kernels import compile_on_host

pytestmark = pytest.mark.sim

ONE = (1, 1, 1)
IN_AND_OUT = {"x": "*fp32", "out": "*fp32", "n": "i32"}


@triton.jit
def shifted(x, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index + 1, index < n)
    tl.store(out + index, value, index < n)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + index, index < n, other=-float("inf"))
    power = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * n + index, power / tl.sum(power, 0), index < n)


@triton.jit
def before_the_start(out, back, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK) - back, 1)


@triton.jit
def integer_sum(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0))


@triton.jit
def asserted(out):
    tl.assume(tl.program_id(0) < 1)
    tl.store(out, 1)


def interpreted(kernel: Any, signature: dict[str, str], constants: dict[str, Any] | None = None) -> Any:
    return compile_on_host(kernel, signature, constants, executor=Executor.INTERPRETER)


def fault_of(kernel: Any, *arguments: Any, grid: tuple[int, int, int] = ONE) -> MemoryFault:
    with pytest.raises(KernelMemoryError) as raised:
        kernel[grid](*arguments)
    return raised.value.fault


def test_a_read_past_the_end_is_named_by_argument_offset_and_line() -> None:
    fault = fault_of(
        interpreted(shifted, IN_AND_OUT, {"BLOCK": 16}), torch.zeros(20), torch.zeros(20), 20, grid=(2, 1, 1)
    )
    assert fault.kernel == "shifted"
    assert (fault.argument, fault.offset, fault.elements) == ("x", 20, 20)
    assert not fault.store
    assert fault.statement == "value = tl.load(x + index + 1, index < n)"
    assert fault.line == 3
    assert fault.program == (1, 0, 0)


def test_a_write_before_the_start_has_a_negative_offset() -> None:
    fault = fault_of(
        interpreted(before_the_start, {"out": "*i32", "back": "i32"}, {"BLOCK": 16}),
        torch.zeros(16, dtype=torch.int32),
        2,
    )
    assert (fault.offset, fault.store) == (-2, True)


def test_an_access_that_lands_in_another_argument_is_still_outside_its_own() -> None:
    both = torch.zeros(40)
    x, out = both[:20].clone(), torch.zeros(20)
    inside = torch.zeros(64)
    assert fault_of(interpreted(shifted, IN_AND_OUT, {"BLOCK": 32}), x, inside, 20).argument == "x"
    interpreted(shifted, IN_AND_OUT, {"BLOCK": 16})[ONE](both[:16], out, 16)  # the storage goes on: allowed


def test_a_faulty_launch_leaves_memory_untouched() -> None:
    out = torch.full((40,), 7.0)
    fault_of(interpreted(shifted, IN_AND_OUT, {"BLOCK": 16}), torch.zeros(20), out, 20, grid=(2, 1, 1))
    assert out.tolist() == [7.0] * 40


def test_both_executors_agree() -> None:
    x = torch.randn(5, 27, generator=torch.Generator().manual_seed(1))
    outs = []
    for executor in Executor:
        out = torch.zeros_like(x)
        compile_on_host(softmax, IN_AND_OUT, {"BLOCK": 32}, executor=executor)[(5, 1, 1)](x, out, 27)
        outs.append(out)
    torch.testing.assert_close(outs[0], outs[1], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(outs[0], x.softmax(1))


def test_a_kernel_can_still_be_compiled_after_another_was_interpreted() -> None:
    out = torch.zeros(5, 27)
    interpreted(softmax, IN_AND_OUT, {"BLOCK": 32})[(5, 1, 1)](torch.zeros(5, 27), out, 27)
    again = compile_on_host(softmax, IN_AND_OUT, {"BLOCK": 64})
    again[(5, 1, 1)](torch.zeros(5, 27), out, 27)
    torch.testing.assert_close(out, torch.full((5, 27), 1 / 27))


def test_sums_of_integers_wrap_to_their_type() -> None:
    x = torch.full((16,), 2**30, dtype=torch.int32)
    for executor in Executor:
        out = torch.full((2,), 5, dtype=torch.int32)
        kernel = compile_on_host(integer_sum, {"x": "*i32", "out": "*i32"}, {"BLOCK": 16}, executor=executor)
        kernel[ONE](x, out)
        assert out.tolist() == [0, 5]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_agree_with_the_native_executor(dtype: torch.dtype) -> None:
    kind = {torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    x = torch.randn(16, generator=torch.Generator().manual_seed(2)).to(dtype)
    outs = []
    for executor in Executor:
        out = torch.zeros(16, dtype=dtype)
        signature = {"x": f"*{kind}", "out": f"*{kind}", "n": "i32"}
        compile_on_host(shifted, signature, {"BLOCK": 16}, executor=executor)[ONE](x, out, 15)
        outs.append(out)
    assert torch.equal(outs[0][:15], outs[1][:15])
    assert torch.equal(outs[0][:15], x[1:])


def test_a_broken_promise_to_the_compiler_is_a_failure_of_the_kernel() -> None:
    kernel = interpreted(asserted, {"out": "*i32"})
    with pytest.raises(KernelCompileError, match="Assume failed") as raised:
        kernel[(2, 1, 1)](torch.zeros(1, dtype=torch.int32))
    assert raised.value.stage is CompileStage.EXECUTE
    assert not isinstance(raised.value, UnsupportedKernel)


def test_a_child_that_dies_is_reported_by_its_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzzer.simnpu.interpreter import InterpretedKernel

    monkeypatch.setattr(InterpretedKernel, "_interpret", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(KernelCompileError) as raised:
        interpreted(asserted, {"out": "*i32"})[ONE](torch.zeros(1, dtype=torch.int32))
    assert raised.value.origin == "interpreter: SIGKILL"
