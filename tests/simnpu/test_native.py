"""Kernels run on the host with the values, widths and orders that the device gives them."""

# Triton kernels are not Python: their parameters have no Python types.
# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

import ctypes
import math
import resource
import struct
import time
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from fuzzer.simnpu import native
from fuzzer.simnpu.driver import build_runtime, run_kernels
from fuzzer.simnpu.options import Executor
from tests.simnpu.host_kernels import compile_on_host

pytestmark = pytest.mark.sim

ONE = (1, 1, 1)


@triton.jit
def program_ids(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(out + (z * ny + y) * nx + x, x + 10 * y + 100 * z)


@triton.jit
def store_scalar(out, value):
    tl.store(out, value)


@triton.jit
def scaled(x, out, n, factor: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, index < n) * factor, index < n)


@triton.jit
def count(out, BLOCK: tl.constexpr):
    tl.atomic_add(out + tl.arange(0, BLOCK), tl.full([BLOCK], 1, tl.int32))


@triton.jit
def last_program(out):
    tl.store(out, tl.program_id(0))


@triton.jit
def reduced(x, out, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)[None, :]
        total += tl.load(x + rows * n + columns, columns < n, other=0.0)
    tl.store(out + tl.arange(0, ROWS), tl.sum(total, 1))


@triton.jit
def extremes(x, out, where, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)[None, :]
    tile = tl.load(x + rows[:, None] * BLOCK + columns)
    high, high_at = tl.max(tile, 1, return_indices=True)
    low, low_at = tl.min(tile, 1, return_indices=True)
    tl.store(out + rows, high)
    tl.store(where + rows, high_at)
    tl.store(out + ROWS + rows, low)
    tl.store(where + ROWS + rows, low_at)


def test_every_program_of_a_three_dimensional_grid_runs_once_with_its_own_ids() -> None:
    kernel = compile_on_host(program_ids, {"out": "*i32"})
    out = torch.full((4, 3, 5), -1, dtype=torch.int32)
    kernel[(5, 3, 4)](out)
    z, y, x = torch.meshgrid(torch.arange(4), torch.arange(3), torch.arange(5), indexing="ij")
    assert torch.equal(out, (x + 10 * y + 100 * z).int())


def test_an_empty_grid_runs_nothing() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    compile_on_host(program_ids, {"out": "*i32"})[(0, 1, 1)](out)
    assert out.item() == 0


def test_a_grid_can_run_backwards_so_that_a_race_shows() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    kernels = [compile_on_host(last_program, {"out": "*i32"}, executor=executor) for executor in Executor]
    for kernel in kernels:
        kernel[(7, 1, 1)](out)
        assert out.item() == 6
        run_kernels(order=native.ProgramOrder.DESCENDING)
        try:
            kernel[(7, 1, 1)](out)
        finally:
            run_kernels(order=native.ProgramOrder.ASCENDING)
        assert out.item() == 0


@pytest.mark.parametrize(
    ("kind", "dtype", "value", "stored"),
    [
        ("i1", torch.bool, True, True),
        ("i8", torch.int8, -3, -3),
        ("i16", torch.int16, -30000, -30000),
        ("i32", torch.int32, -5, -5),
        ("i64", torch.int64, -(2**40) - 7, -(2**40) - 7),
        ("fp16", torch.float16, 1 / 3, torch.tensor(1 / 3).half().item()),
        ("bf16", torch.bfloat16, 1 / 3, torch.tensor(1 / 3).bfloat16().item()),
        ("fp32", torch.float32, 1 / 3, torch.tensor(1 / 3).item()),
    ],
)
def test_scalar_arguments_arrive_in_their_width(kind: str, dtype: torch.dtype, value: Any, stored: Any) -> None:
    out = torch.zeros(2, dtype=dtype)
    compile_on_host(store_scalar, {"out": f"*{kind}", "value": kind})[ONE](out, value)
    assert out.tolist() == [stored, 0]


def test_integers_wrap_to_their_width_and_unknown_types_are_refused() -> None:
    assert native.pack_scalar("i8", 300) == struct.pack("<q", 300 & 0xFF)
    assert native.pack_scalar("i64", -1) == b"\xff" * 8
    with pytest.raises(ValueError, match="complex"):
        native.pack_scalar("complex", 0)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 1.00390625, 1.01171875, 3.4e38, math.inf, -math.inf, 1e-40])
def test_bfloat16_scalars_round_to_nearest_even(value: float) -> None:
    (bits,) = struct.unpack("<H6x", native.pack_scalar("bf16", value))
    expected = int(torch.tensor(value).bfloat16().view(torch.int16).item()) & 0xFFFF
    assert bits == expected


@pytest.mark.parametrize(("kind", "dtype"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_16_bit_arithmetic_rounds_after_every_operation_as_torch_does(kind: str, dtype: torch.dtype) -> None:
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0)).to(dtype)
    out = torch.zeros_like(x)
    kernel = compile_on_host(scaled, {"x": f"*{kind}", "out": f"*{kind}", "n": "i32"}, {"factor": 3, "BLOCK": 128})
    kernel[(8, 1, 1)](x, out, 1000)
    assert torch.equal(out, x * 3)


def test_atomics_of_all_programs_add_up() -> None:
    out = torch.zeros(16, dtype=torch.int32)
    compile_on_host(count, {"out": "*i32"}, {"BLOCK": 16})[(9, 1, 1)](out)
    assert out.tolist() == [9] * 16


def test_fresh_tile_memory_holds_poison_and_not_what_another_program_left() -> None:
    library = ctypes.CDLL(str(build_runtime()))
    library.simnpu_tile_alloc.restype = ctypes.c_void_p
    library.simnpu_tile_alloc.argtypes = [ctypes.c_size_t]
    library.simnpu_tile_poison(0xA5)
    try:
        for _ in range(2):
            places = [library.simnpu_tile_alloc(size) for size in (100, 3 << 20, 100)]
            for place in places:
                assert place % 64 == 0
                assert ctypes.string_at(place, 100) == b"\xa5" * 100
                ctypes.memset(place, 0, 100)
            library.simnpu_tile_reset()
    finally:
        library.simnpu_tile_poison(0xFF)


def test_a_long_loop_over_tiles_does_not_keep_the_memory_of_earlier_programs() -> None:
    x, out = torch.ones(16, 64 * 40), torch.zeros(16)
    kernel = compile_on_host(reduced, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 64, "ROWS": 16})
    kernel[(50, 1, 1)](x, out, 64 * 40)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kernel[(500, 1, 1)](x, out, 64 * 40)
    assert out.tolist() == [64.0 * 40] * 16
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


def test_a_large_tile_compiles_in_bounded_time() -> None:
    start = time.perf_counter()
    kernel = compile_on_host(scaled, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"factor": 5, "BLOCK": 32768})
    assert time.perf_counter() - start < 5.0
    x = torch.arange(40000.0)
    out = torch.zeros_like(x)
    kernel[(2, 1, 1)](x, out, 40000)
    assert torch.equal(out, x * 5)


def test_the_undefined_symbols_of_an_object_are_the_functions_it_needs() -> None:
    native._host()
    code = native.compile_object(
        "declare double @sin(double)\ndeclare double @unused(double)\n"
        "define double @f(double %x) {\n  %r = call double @sin(double %x)\n  ret double %r\n}"
    )
    assert native.undefined_symbols(code) == ("sin",)


def test_device_math_of_16_bit_types_goes_through_float_and_other_types_keep_their_own_version() -> None:
    text = native.bind_device_math(
        "declare half @__hmf_tanhDh(half)\ndeclare i1 @__hmf_isnan(bfloat)\ndeclare i32 @__hmf_powi(i32, i32)\n"
    )
    assert "declare float @__hmf_tanhDh_f32(float)" in text
    assert "declare i1 @__hmf_isnan_f32(float)" in text
    assert "declare i32 @__hmf_powi_i32(i32, i32)" in text
    assert "fptrunc float %r to half" in text


def test_constants_folded_into_a_kernel_are_passed_by_the_caller_but_not_to_the_kernel() -> None:
    from triton.compiler.compiler import ASTSource

    source = ASTSource(scaled, {"x": "*fp32", "out": "*fp32"}, {"n": 8, "factor": 2, "BLOCK": 16}, None)
    interface = native.Interface.of(source)
    assert interface.names == ("x", "out")
    assert interface.positions == (0, 1)
    kernel = compile_on_host(scaled, {"x": "*fp32", "out": "*fp32"}, {"n": 8, "factor": 2, "BLOCK": 16})
    x, out = torch.ones(16), torch.zeros(16)
    kernel[ONE](x, out, 8)
    assert out.tolist() == [2.0] * 8 + [0.0] * 8


@pytest.mark.parametrize("executor", list(Executor))
@pytest.mark.parametrize(("kind", "dtype"), [("fp32", torch.float32), ("fp16", torch.float16), ("i32", torch.int32)])
def test_an_extreme_and_its_index_start_from_the_data_and_not_from_what_memory_held(
    kind: str, dtype: torch.dtype, executor: Executor
) -> None:
    x = torch.randint(-100, -2, (8, 5), generator=torch.Generator().manual_seed(3)).to(dtype)
    out, where = torch.zeros(2, 8, dtype=dtype), torch.zeros(2, 8, dtype=torch.int32)
    signature = {"x": f"*{kind}", "out": f"*{kind}", "where": "*i32"}
    kernel = compile_on_host(extremes, signature, {"ROWS": 8, "BLOCK": 5}, executor=executor)
    kernel[ONE](x, out, where)
    assert torch.equal(out[0], x.amax(1))
    assert torch.equal(out[1], x.amin(1))
    assert torch.equal(where[0].long(), (x == x.amax(1, keepdim=True)).int().argmax(1))
    assert torch.equal(where[1].long(), (x == x.amin(1, keepdim=True)).int().argmax(1))
