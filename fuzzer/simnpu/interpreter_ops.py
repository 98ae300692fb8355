"""The operations of Triton's interpreter, with bounds checks and what triton-ascend adds to the language.

Import it only in a process that never compiles again: see `interpreter`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl
import triton.language.extra as extra
from triton.language.extra.ascend import libdevice
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.jit import JITFunction

ARGUMENT = "simnpu.argument"
"""Attribute of a pointer's handle: the kernel argument it was computed from."""


class OutsideArgument(Exception):
    """An unmasked lane is outside the storage of its argument."""

    def __init__(self, argument: str, address: int, store: bool) -> None:
        super().__init__(argument)
        self.argument, self.address, self.store = argument, address, store


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Memory that one pointer argument may touch: the tensor's storage."""

    name: str
    address: int
    begin: int
    end: int
    element: int


def extent_of(name: str, value: Any) -> Extent:
    """The extent of a tensor argument. Raises TypeError for a bare address, whose extent nobody knows."""
    if not hasattr(value, "untyped_storage"):
        raise TypeError(f"argument {name} must be a tensor to be interpreted, not {type(value).__name__}")
    storage = value.untyped_storage()
    begin = storage.data_ptr()
    return Extent(
        name=name,
        address=value.data_ptr(),
        begin=begin,
        end=begin + storage.nbytes(),
        element=value.element_size(),
    )


# --- the interpreter's operations -----------------------------------------------------------------------------------

_EXTERNAL: dict[str, Callable[..., Any]] = {
    "recip": lambda x: np.float32(1) / x,
    "log1p": np.log1p,
    "relu": lambda x: np.where(x != x, x, np.maximum(x, 0)),
    "tan": np.tan,
    "atan": np.arctan,
    "tanh": np.tanh,
    "ilogb": lambda x: np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1, np.abs(x))),
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "pow": np.power,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "isinf": np.isinf,
    "isnan": np.isnan,
}


def external_function(symbol: str) -> Callable[..., Any] | None:
    """The numpy version of one of CANN's `__hmf_*` functions, whatever type its name ends in."""
    name = symbol.removeprefix("__hmf_")
    for candidate in (name, name.removesuffix("Dh"), name[:-1]):
        if candidate in _EXTERNAL:
            return _EXTERNAL[candidate]
    return None


def _value(handle: Any) -> int:
    return int(np.asarray(handle.data).reshape(-1)[0])


_KEEP_ARGUMENT = ("addptr", "broadcast", "splat", "expand_dims", "trans", "reshape", "bitcast", "cat", "join")


class CheckedBuilder(triton_interpreter.InterpreterBuilder):  # type: ignore[misc]  # Triton is untyped
    """Triton's numpy builder with provenance of addresses, bounds checks, and the operations that Ascend adds."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        super().__init__()
        self.extents = {extent.name: extent for extent in extents}
        for name in _KEEP_ARGUMENT:
            method = getattr(self, f"create_{name}", None)
            if method is not None:
                setattr(self, f"create_{name}", self._keeping_argument(method))

    @staticmethod
    def _keeping_argument(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(handle: Any, *rest: Any) -> Any:
            result = method(handle, *rest)
            attributes = getattr(handle, "attr", {})
            if ARGUMENT in attributes:
                result.attr[ARGUMENT] = attributes[ARGUMENT]
            return result

        return call

    def _check(self, pointers: Any, mask: Any, store: bool) -> None:
        extent = self.extents.get(pointers.attr.get(ARGUMENT, ""))
        if extent is None:
            raise NotImplementedError("an address that was not computed from a pointer argument")
        addresses = np.asarray(pointers.data)[np.broadcast_to(mask.data, np.shape(pointers.data)).astype(bool)]
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        outside = (addresses < extent.begin) | (addresses + np.uint64(size) > extent.end)
        if outside.any():
            raise OutsideArgument(extent.name, int(addresses[outside][0]), store)

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, cache: Any, eviction: Any, volatile: Any) -> Any:
        """Load the unmasked lanes, all of which must lie inside their argument."""
        self._check(ptrs, mask, store=False)
        return super().create_masked_load(ptrs, mask, other, cache, eviction, volatile)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache: Any, eviction: Any) -> Any:
        """Store the unmasked lanes, all of which must lie inside their argument."""
        self._check(ptrs, mask, store=True)
        return super().create_masked_store(ptrs, _of_type(value, ptrs.get_element_ty()), mask, cache, eviction)

    def create_atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """Atomic update of the unmasked lanes."""
        self._check(ptr, mask, store=True)
        return super().create_atomic_rmw(op, ptr, _of_type(val, ptr.get_element_ty()), mask, sem, scope)

    def get_int1_ty(self) -> Any:
        """Absent from Triton's builder."""
        return tl.int1

    def get_bf16(self, value: float) -> Any:
        """A bfloat16 constant."""
        return triton_interpreter.TensorHandle(_round_bfloat16([value]), tl.bfloat16)

    # bfloat16 is kept as uint16 and computed in float32

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[..., Any]) -> Any:
        """Elementwise operation on two handles; comparisons give bool data under the operands' type."""
        if lhs.dtype.scalar != tl.bfloat16 or op in _BITWISE:
            return super().binary_op(lhs, rhs, op)
        result = op(_wide(lhs), _wide(rhs))
        data = result if result.dtype == bool else _round_bfloat16(result)
        return triton_interpreter.TensorHandle(data, tl.bfloat16)

    def unary_op(self, arg: Any, op: Callable[..., Any]) -> Any:
        """Elementwise operation on one handle."""
        if arg.dtype.scalar != tl.bfloat16:
            return super().unary_op(arg, op)
        return triton_interpreter.TensorHandle(_round_bfloat16(op(_wide(arg))), tl.bfloat16)

    def create_rsqrt(self, arg: Any) -> Any:
        """Reciprocal square root."""
        return self.unary_op(arg, lambda x: 1 / np.sqrt(x))

    def create_erf(self, arg: Any) -> Any:
        """Error function."""
        erf = np.vectorize(math.erf, otypes=[np.float32])
        return self.unary_op(arg, lambda x: erf(x).astype(x.dtype))

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """Multiply and add."""
        return self.create_fadd(self.create_fmul(x, y), z)

    def create_mod(self, lhs: Any, rhs: Any) -> Any:
        """Remainder of floats with the sign of the dividend."""
        return self.binary_op(lhs, rhs, np.fmod)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert, going through float32 where bfloat16 is on one side."""
        if src.dtype.scalar == tl.bfloat16 and dst_type.scalar != tl.bfloat16:
            return super().cast_impl(triton_interpreter.TensorHandle(_wide(src), tl.float32), dst_type)
        if dst_type.scalar == tl.bfloat16 and src.dtype.scalar != tl.bfloat16:
            return triton_interpreter.TensorHandle(_round_bfloat16(src.data), tl.bfloat16)
        return super().cast_impl(src, dst_type)

    # what triton-ascend adds to the language

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, arguments: list[Any], result: Any, pure: bool
    ) -> Any:
        """One of CANN's math functions."""
        function = external_function(symbol)
        if symbol == "__hmf_powi":
            function = _wrapping_power
        if function is None:
            raise NotImplementedError(f"{symbol} in the interpreter")
        values = [_wide(argument) for argument in arguments]
        computed = function(*values)
        if result.scalar == tl.bfloat16:
            return triton_interpreter.TensorHandle(_round_bfloat16(computed), tl.bfloat16)
        dtype = triton_interpreter._get_np_dtype(result.scalar)
        return triton_interpreter.TensorHandle(np.asarray(computed).astype(dtype), result.scalar)

    def create_tanh(self, arg: Any) -> Any:
        """Hyperbolic tangent."""
        return self.unary_op(arg, np.tanh)

    def create_annotation(self, *_: Any) -> None:
        """Hints mean nothing here."""

    def create_extract_slice(
        self, full: Any, offsets: Sequence[Any], sizes: Sequence[Any], strides: Sequence[Any]
    ) -> Any:
        """Strided part of a tile."""
        part = np.ascontiguousarray(full.data[_slices(offsets, sizes, strides)])
        return triton_interpreter.TensorHandle(part, full.dtype.scalar)

    def create_insert_slice(
        self, full: Any, part: Any, offsets: Sequence[Any], sizes: Sequence[Any], strides: Sequence[Any]
    ) -> Any:
        """A tile with a strided part replaced."""
        data = full.data.copy()
        data[_slices(offsets, sizes, strides)] = part.data
        return triton_interpreter.TensorHandle(data, full.dtype.scalar)

    def create_extract_scalar(self, source: Any, indices: Sequence[Any]) -> Any:
        """One element of a tile."""
        return triton_interpreter.TensorHandle(
            np.array([source.data[tuple(_value(index) for index in indices)]]), source.dtype.scalar
        )

    def create_flip(self, arg: Any, dim: int) -> Any:
        """Reverse along one axis."""
        return triton_interpreter.TensorHandle(np.flip(arg.data, dim).copy(), arg.dtype.scalar)

    def create_sort(self, arg: Any, dim: int, descending: bool) -> Any:
        """Sort along one axis."""
        data = np.sort(arg.data, axis=dim)
        return triton_interpreter.TensorHandle(np.flip(data, dim).copy() if descending else data, arg.dtype.scalar)

    def create_gather(self, source: Any, index: Any, axis: int) -> Any:
        """`torch.gather` on tiles."""
        return triton_interpreter.TensorHandle(np.take_along_axis(source.data, index.data, axis), source.dtype.scalar)


_BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift)


def _wide(handle: Any) -> Any:
    """A handle's data, bfloat16 as float32."""
    data = np.asarray(handle.data)
    if handle.dtype.scalar != tl.bfloat16 or data.dtype == bool:
        return data
    return (data.astype(np.uint32) << 16).view(np.float32)


def _of_type(handle: Any, dtype: Any) -> Any:
    """The handle with data as wide as its type says: numpy's sums of int32 are int64, and Triton stores the data."""
    expected = triton_interpreter._get_np_dtype(dtype)
    if np.asarray(handle.data).dtype.itemsize == expected.itemsize:
        return handle
    return triton_interpreter.TensorHandle(np.asarray(handle.data).astype(expected), dtype)


def _reduce_in_type(operation: Any) -> None:
    """Let a class of Triton's reductions or scans give results of their type, and bfloat16 its values."""
    apply = operation.apply

    def narrowed(value: Any, dtype: Any) -> Any:
        if dtype == tl.bfloat16:
            handle = triton_interpreter.TensorHandle(_round_bfloat16(value.handle.data), dtype)
        else:
            handle = _of_type(value.handle, dtype)
        kind = tl.block_type(dtype, value.shape) if value.type.is_block() else dtype
        return tl.tensor(handle, kind)

    def checked_apply(self: Any, operands: Any) -> Any:
        several = isinstance(operands, tuple)
        values = operands if several else (operands,)
        dtypes = [value.dtype.scalar for value in values]
        wide = tuple(
            tl.tensor(
                triton_interpreter.TensorHandle(_wide(value.handle), tl.float32),
                tl.block_type(tl.float32, value.shape),
            )
            if dtype == tl.bfloat16
            else value
            for value, dtype in zip(values, dtypes, strict=True)
        )
        results = apply(self, wide if several else wide[0])
        if not isinstance(results, tuple):
            return narrowed(results, dtypes[0])
        return tuple(narrowed(result, dtype) for result, dtype in zip(results, dtypes, strict=True))

    operation.apply = checked_apply


def _slices(offsets: Sequence[Any], sizes: Sequence[Any], strides: Sequence[Any]) -> tuple[slice, ...]:
    def plain(number: Any) -> int:
        return _value(number) if hasattr(number, "data") else int(getattr(number, "value", number))

    return tuple(
        slice(plain(o), plain(o) + (plain(n) - 1) * plain(s) + 1, plain(s))
        for o, n, s in zip(offsets, sizes, strides, strict=True)
    )


def _round_bfloat16(values: Any) -> Any:
    bits = np.asarray(values).astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def _wrapping_power(base: Any, exponent: Any) -> Any:
    with np.errstate(over="ignore"):
        positive = np.power(base, np.maximum(exponent, 0))
    negative = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, negative, positive).astype(base.dtype)


# --- putting Triton into interpreting mode --------------------------------------------------------------------------


def argument_handle(name: str, kind: str, value: Any) -> Any:
    """A run-time argument as the interpreter represents it; pointers remember whose they are."""
    dtype = tl.str_to_ty(kind)
    if kind.startswith("*"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else int(value or 0)
        handle = triton_interpreter.TensorHandle(np.array([address], dtype=np.uint64), dtype)
        handle.attr[ARGUMENT] = name
    elif dtype == tl.bfloat16:
        handle = triton_interpreter.TensorHandle(_round_bfloat16([value]), dtype)
    else:
        handle = triton_interpreter.TensorHandle(
            np.array([value]).astype(triton_interpreter._get_np_dtype(dtype)), dtype
        )
    return tl.tensor(handle, dtype)


def _patch_globals(function: Any, builder: CheckedBuilder) -> None:
    """Patch the language functions that a kernel's file imported by name, which Triton's own patching misses."""
    for name, value in list(function.__globals__.items()):
        if tl.core.is_builtin(value):
            function.__globals__[name] = partial(_interpreted, value, builder)


def _interpreted(member: Callable[..., Any], builder: CheckedBuilder, *arguments: Any, **named: Any) -> Any:
    position = _OFFSETS.get(member.__name__)
    if position is not None and len(arguments) > position:
        offsets = [tl.constexpr(o) if isinstance(o, int) else o for o in arguments[position]]
        arguments = (*arguments[:position], offsets, *arguments[position + 1 :])
    return member(*arguments, **{**named, "_builder": builder})


_OFFSETS = {"extract_slice": 1, "get_element": 1, "insert_slice": 2}
"""Position of the offsets, which these functions take as tensors or constexprs: in a compiled kernel no int is left."""


def take_over_triton(kernel: Any, builder: CheckedBuilder) -> tuple[Callable[..., Any], str, int]:
    """Switch this process to interpreting with `builder`; gives the kernel as a plain function, its file and line."""
    triton_interpreter.interpreter_builder = builder
    functions: dict[Any, Any] = {}

    def call(function: Any, *arguments: Any, **named: Any) -> Any:
        """A helper kernel called from a kernel."""
        if function not in functions:
            _patch_globals(function.fn, builder)
            functions[function] = triton_interpreter.InterpretedFunction(function.fn)
        return functions[function](*arguments, **named)

    JITFunction.__call__ = call
    for operation in (triton_interpreter.ReduceOps, triton_interpreter.ScanOps):
        _reduce_in_type(operation)
    np.seterr(all="ignore")
    for module in (libdevice, extra.cann.libdevice, extra.cann.extension):
        triton_interpreter._patch_builtin(module, builder)
    _patch_globals(kernel.fn, builder)
    interpreted = triton_interpreter.InterpretedFunction(kernel.fn)
    function = interpreted.rewrite()
    triton_interpreter._patch_lang(function)
    return function, interpreted.rewriter.filename, interpreted.rewriter.def_file_lineno
