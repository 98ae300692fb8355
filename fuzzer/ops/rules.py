"""PyTorch's typing rules: broadcasting, dtype promotion, dims, and the bounds of integer results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite

from fuzzer.ops.spec import IllTyped, Number
from fuzzer.program import DType, ScalarType, TensorType, Type

_FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)
_LARGEST_HIGH = 2**31
MAX_NUMEL = 2_000_000
"""No value of a program holds more elements than this."""


def tensor(value: Type) -> TensorType:
    """The value, which must be a tensor."""
    if not isinstance(value, TensorType):
        raise IllTyped("a tensor is needed, not a Python number")
    return value


def number(value: Type) -> ScalarType:
    """The value, which must be a Python number."""
    if not isinstance(value, ScalarType):
        raise IllTyped("a Python number is needed, not a tensor")
    return value


def floating(value: Type) -> TensorType:
    """The value, which must be a floating tensor."""
    x = tensor(value)
    if not x.dtype.is_floating:
        raise IllTyped(f"a floating tensor is needed, not {x.dtype}")
    return x


def numeric(value: Type) -> TensorType:
    """The value, which must be a tensor of numbers."""
    x = tensor(value)
    if x.dtype is DType.BOOL:
        raise IllTyped("numbers are needed, not bool")
    return x


def boolean(value: Type) -> TensorType:
    """The value, which must be a tensor of bools."""
    x = tensor(value)
    if x.dtype is not DType.BOOL:
        raise IllTyped(f"a bool tensor is needed, not {x.dtype}")
    return x


def make(shape: Iterable[int], dtype: DType, high: int | None = None) -> TensorType:
    """A tensor type; drops a bound that does not apply, and refuses what is too large to run."""
    sizes = tuple(shape)
    total = 1
    for size in sizes:
        if size < 1:
            raise IllTyped(f"an empty shape, {sizes}")
        total *= size
    if total > MAX_NUMEL:
        raise IllTyped(f"{total} elements are more than {MAX_NUMEL}")
    if len(sizes) > 6:
        raise IllTyped(f"rank {len(sizes)} is more than 6")
    if not dtype.is_integer or high is None or high > _LARGEST_HIGH:
        high = None
    return TensorType(shape=sizes, dtype=dtype, high=high)


def like(x: TensorType, shape: Iterable[int]) -> TensorType:
    """The same elements, or some of them, in another shape."""
    return make(shape, x.dtype, x.high)


def axis(dim: int, rank: int) -> int:
    """A dim as a non-negative number."""
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise IllTyped(f"dim {dim} is outside rank {rank}")
    return dim % bound


def axes(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """Several different dims as non-negative numbers, in the order given."""
    found = tuple(axis(dim, rank) for dim in dims)
    if len(set(found)) != len(found):
        raise IllTyped(f"dims {tuple(dims)} name one dim twice")
    return found


def size_at(x: TensorType, dim: int) -> int:
    """Size along a dim; a 0-d tensor counts as one of size 1."""
    return x.shape[dim] if x.shape else 1


def without(shape: Sequence[int], dims: Iterable[int], keepdim: bool = False) -> tuple[int, ...]:
    """The shape after dims (non-negative) are reduced."""
    gone = set(dims)
    if keepdim:
        return tuple(1 if dim in gone else size for dim, size in enumerate(shape))
    return tuple(size for dim, size in enumerate(shape) if dim not in gone)


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all broadcast to."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for dim, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[dim] not in (1, size):
                    raise IllTyped(f"shapes {[tuple(one) for one in shapes]} do not broadcast")
                result[dim] = size
    return tuple(result)


def broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Can a tensor of the first shape be used where one of the second is written?"""
    if len(shape) > len(target):
        return False
    ends = target[len(target) - len(shape) :]
    return all(size in (1, wanted) for size, wanted in zip(shape, ends, strict=True))


def _rank_of_kind(dtype: DType) -> int:
    return 2 if dtype.is_floating else 1 if dtype.is_integer else 0


def _join(left: DType, right: DType) -> DType:
    if left is right:
        return left
    if _rank_of_kind(left) != _rank_of_kind(right):
        return max(left, right, key=_rank_of_kind)
    if left.is_integer:
        return DType.INT64
    if {left, right} == {DType.FLOAT16, DType.BFLOAT16}:
        return DType.FLOAT32
    return max(left, right, key=_FLOATS.index)


def promote(*operands: Type | Number) -> DType:
    """The dtype of an arithmetic result, by torch.result_type's rule of three priorities."""
    joined: list[DType | None] = [None, None, None]
    for operand in operands:
        match operand:
            case TensorType(shape=shape, dtype=dtype):
                priority = 0 if shape else 1
            case ScalarType(dtype=dtype):
                priority = 2
                dtype = DType.FLOAT32 if dtype.is_floating else dtype
            case bool():
                priority, dtype = 2, DType.BOOL
            case int():
                priority, dtype = 2, DType.INT64
            case _:
                priority, dtype = 2, DType.FLOAT32
        before = joined[priority]
        joined[priority] = dtype if before is None else _join(before, dtype)
    result: DType | None = None
    for dtype_of in joined:
        if dtype_of is not None and (result is None or _rank_of_kind(dtype_of) > _rank_of_kind(result)):
            result = dtype_of
    if result is None:
        raise IllTyped("nothing to promote")
    return result


def high_of(operand: Type | Number) -> int | None:
    """Values lie in [0, high); None where unknown or possibly negative."""
    match operand:
        case TensorType(dtype=DType.BOOL) | bool():
            return 2
        case TensorType(high=high):
            return high
        case ScalarType(dtype=DType.BOOL):
            return 2
        case ScalarType(high=high):
            return None if high is None else high + 1
        case int():
            return operand + 1 if operand >= 0 else None
        case _:
            return None


def widest(*operands: Type | Number) -> int | None:
    """The bound of a result whose elements each come from one of the operands."""
    highs = [high_of(operand) for operand in operands]
    known = [high for high in highs if high is not None]
    return max(known) if len(known) == len(highs) else None


def fits_dtype(value: Number, dtype: DType) -> bool:
    """Can a tensor of this dtype be filled with the number without a change of kind or an overflow?"""
    if isinstance(value, bool):
        return True
    if isinstance(value, float):
        return dtype.is_floating and (not isfinite(value) or abs(value) <= limit(dtype))
    return dtype is not DType.BOOL and abs(value) <= limit(dtype)


def limit(dtype: DType) -> float:
    """The largest absolute value that the dtype holds, rounded down."""
    return {
        DType.FLOAT64: inf,
        DType.FLOAT32: 3.0e38,
        DType.BFLOAT16: 3.0e38,
        DType.FLOAT16: 65504.0,
        DType.INT64: 9.0e18,
        DType.INT32: 2147483647.0,
        DType.BOOL: 1.0,
    }[dtype]
