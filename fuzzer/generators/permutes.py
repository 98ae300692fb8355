"""Idioms of permutes and reshapes: one buffer under several views."""

from __future__ import annotations

from math import prod

from fuzzer.generators.builder import Builder
from fuzzer.generators.growth import Idiom, growth, operand, pointwise, pointwise_pair, reduction
from fuzzer.ops import Family
from fuzzer.ops.permutes import draw_order, factors
from fuzzer.program import DType, TensorType


def split_and_back(build: Builder) -> None:
    """Split a dim, combine with a parameter along the parts, merge again, and reduce both views."""
    value = build.pick_tensor(
        lambda kind: 1 <= kind.rank <= 4 and kind.dtype is not DType.BOOL and bool(factors(kind.shape[-1]))
    )
    if value is None:
        value = build.add_main_input()
        if value is None:
            return
    found = build.type_of(value)
    options = factors(found.shape[-1]) if found.shape else ()
    if not options:
        return
    inner = build.draw.choice(options)
    outer = found.shape[-1] // inner
    lead = found.shape[:-1]
    split = build.emit("reshape", value, shape=(*lead, outer, inner))
    if split is None:
        return
    shapes = ((inner,), (outer, 1), (outer, inner), (*lead, 1, inner), (*lead, outer, 1))
    parameter = build.add_input(TensorType(shape=build.draw.choice(shapes), dtype=found.dtype))
    scaled = split if parameter is None else pointwise_pair(build, split, parameter)
    if scaled is None:
        return
    if build.draw.chance(40):
        # Reduce the split view over its parts, and the flat one over the whole.
        dims = (len(lead), len(lead) + 1)
        build.emit(build.draw.choice(("sum", "mean", "amax")), scaled, dim=dims)
        flat: str | None = pointwise_pair(build, value, value) if build.draw.chance(60) else value
    else:
        flat = build.emit("reshape", scaled, shape=found.shape)
        if flat is not None and build.draw.chance(75):
            flat = pointwise_pair(build, flat, value)
        if build.draw.chance(60):
            flat = pointwise(build, flat)
    if flat is not None:
        build.emit(build.draw.choice(("sum", "mean", "amax", "sum_keepdim")), flat, dim=len(lead))


def permuted_beside(build: Builder) -> None:
    """A permuted copy of a value, beside a reduction of the value as it was."""
    value = pointwise_pair(build, operand(build, 2)) or operand(build, 2)
    if value is None or build.type_of(value).rank < 2:
        return
    order = draw_order(build.draw, build.type_of(value).rank)
    turned = build.emit("permute", value, dims=order)
    if turned is None:
        return
    copy = build.emit(build.draw.choice(("clone", "contiguous", "clone_contiguous")), turned)
    build.kept.append(copy or turned)
    reduction(build, value)


def reduced_transposed(build: Builder) -> None:
    """A reduction over dims that are not neighbours in memory."""
    value = operand(build, 2)
    if value is None or build.type_of(value).rank < 2:
        return
    turned = build.emit("permute", value, dims=draw_order(build.draw, build.type_of(value).rank))
    if build.draw.chance(30):
        turned = pointwise(build, turned)
    if turned is not None and build.draw.chance(25) and build.type_of(turned).dtype.is_floating:
        build.emit("var_plus_mean", turned, dim=(0, 1) if build.type_of(turned).rank > 2 else 0)
    else:
        reduction(build, turned)


def merged_heads(build: Builder) -> None:
    """Split the last dim into heads, permute, work on them, permute back and merge, as attention does."""
    value = operand(build, 2)
    if value is None:
        return
    found = build.type_of(value)
    options = factors(found.shape[-1]) if found.rank in (2, 3) else ()
    if not options:
        return
    inner = build.draw.choice(options)
    rank = found.rank
    split = build.emit("unflatten", value, dim=-1, sizes=(found.shape[-1] // inner, inner))
    turned = None if split is None else build.emit("transpose", split, dim0=rank - 2, dim1=rank - 1)
    if turned is None:
        return
    worked = pointwise_pair(build, turned) if build.draw.chance(50) else pointwise(build, turned)
    if worked is None or build.type_of(worked).rank != rank + 1:
        return
    if build.type_of(worked).dtype.is_floating and build.draw.chance(30):
        worked = build.emit("softmax", worked, dim=build.draw.integer(0, rank)) or worked
    back = build.emit("transpose", worked, dim0=rank - 2, dim1=rank - 1)
    if back is None:
        return
    shape = build.type_of(back).shape
    build.emit("reshape", back, shape=(*shape[: rank - 1], prod(shape[rank - 1 :])))


def transposed_sum(build: Builder) -> None:
    """A value combined with another that lies the other way round."""
    value = operand(build, 2)
    if value is None or build.type_of(value).rank < 2:
        return
    found = build.type_of(value)
    shape = (*found.shape[:-2], found.shape[-1], found.shape[-2])
    other = build.add_input(TensorType(shape=shape, dtype=found.dtype))
    turned = None if other is None else build.emit("transpose", other, dim0=-2, dim1=-1)
    if turned is not None:
        made = pointwise_pair(build, value, turned)
        if build.draw.chance(50):
            reduction(build, made)


IDIOMS: tuple[Idiom, ...] = (
    Idiom(split_and_back, 8),
    Idiom(permuted_beside, 4),
    Idiom(reduced_transposed, 3),
    Idiom(merged_heads, 2),
    Idiom(transposed_sum, 2),
)
grow = growth(Family.PERMUTES, IDIOMS)
