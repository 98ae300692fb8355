"""The operations of Triton's interpreter, with bounds checks and what triton-ascend adds to the language.

Import it only in a process that never compiles again: see `interpreter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    "ilogb": lambda x: np.frexp(x)[1] - 1,
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


def _is_pointer(dtype: Any) -> bool:
    return isinstance(dtype, tl.pointer_type)


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
        return super().create_masked_store(ptrs, value, mask, cache, eviction)

    def create_atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """Atomic update of the unmasked lanes."""
        self._check(ptr, mask, store=True)
        return super().create_atomic_rmw(op, ptr, val, mask, sem, scope)

    # bfloat16 is kept as uint16 and computed in float32

    def _wide(self, handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        bits = np.asarray(handle.data).astype(np.uint32) << 16
        return triton_interpreter.TensorHandle(bits.view(np.float32), tl.float32)

    def _narrow(self, handle: Any, like: Any) -> Any:
        if like.dtype.scalar != tl.bfloat16 or handle.dtype.scalar != tl.bfloat16:
            return handle
        if np.asarray(handle.data).dtype == np.uint16 or np.asarray(handle.data).dtype == bool:
            return handle
        return triton_interpreter.TensorHandle(_round_bfloat16(handle.data), tl.bfloat16)

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[..., Any]) -> Any:
        """Elementwise operation on two handles; comparisons give bool data under the operands' type."""
        if lhs.dtype.scalar != tl.bfloat16:
            return super().binary_op(lhs, rhs, op)
        result = op(self._wide(lhs).data, self._wide(rhs).data)
        return self._narrow(triton_interpreter.TensorHandle(result, tl.bfloat16), lhs)

    def unary_op(self, arg: Any, op: Callable[..., Any]) -> Any:
        """Elementwise operation on one handle."""
        if arg.dtype.scalar != tl.bfloat16:
            return super().unary_op(arg, op)
        return triton_interpreter.TensorHandle(_round_bfloat16(op(self._wide(arg).data)), tl.bfloat16)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert, going through float32 where bfloat16 is on one side."""
        if src.dtype.scalar == tl.bfloat16 and dst_type.scalar != tl.bfloat16:
            return super().cast_impl(self._wide(src), dst_type)
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
        values = [np.asarray(self._wide(argument).data) for argument in arguments]
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


def take_over_triton(kernel: Any, builder: CheckedBuilder) -> tuple[Callable[..., Any], str, int]:
    """Switch this process to interpreting with `builder`; gives the kernel as a plain function, its file and line."""
    triton_interpreter.interpreter_builder = builder
    functions: dict[Any, Any] = {}

    def call(function: Any, *arguments: Any, **named: Any) -> Any:
        """A helper kernel called from a kernel."""
        if function not in functions:
            functions[function] = triton_interpreter.InterpretedFunction(function.fn)
        return functions[function](*arguments, **named)

    JITFunction.__call__ = call
    for module in (libdevice, extra.cann.libdevice, extra.cann.extension):
        triton_interpreter._patch_builtin(module, builder)
    interpreted = triton_interpreter.InterpretedFunction(kernel.fn)
    function = interpreted.rewrite()
    triton_interpreter._patch_lang(function)
    return function, interpreted.rewriter.filename, interpreted.rewriter.def_file_lineno
