"""Idioms of masks: masked softmax, masked means, two sides of a where, writes under a mask."""

from __future__ import annotations

from fuzzer.generators.builder import Builder
from fuzzer.generators.growth import Idiom, growth, operand, pointwise, reduction
from fuzzer.ops import BY_NAME, Family
from fuzzer.program import DType


def masked_softmax(build: Builder) -> None:
    """A softmax under a mask, as attention has it."""
    value = operand(build)
    if value is None or not build.type_of(value).dtype.is_floating or not build.type_of(value).rank:
        return
    masked = build.apply(BY_NAME["masked_fill"], value)
    made = None if masked is None else build.emit("softmax", masked, dim=-1)
    if made is not None and build.draw.chance(40):
        reduction(build, made)


def masked_mean(build: Builder) -> None:
    """The sum under a mask over the number of its members."""
    value = operand(build)
    if value is None or not build.type_of(value).rank:
        return
    shape = build.type_of(value).shape
    mask = build.pick_tensor(lambda kind: kind.shape == shape and kind.dtype is DType.BOOL)
    mask = mask or build.apply(BY_NAME["gt_number"], value)
    kept = None if mask is None else build.emit("mul", value, mask)
    if mask is None or kept is None:
        return
    dim = build.draw.integer(0, len(shape) - 1)
    total, count = build.emit("sum", kept, dim=dim), build.emit("sum", mask, dim=dim)
    if total is not None and count is not None:
        build.emit("safe_div", total, count)


def two_sides(build: Builder) -> None:
    """Where, with something computed on both sides."""
    value = operand(build)
    left, right = pointwise(build, value), pointwise(build, value)
    if value is None or left is None or right is None:
        return
    mask = build.apply(BY_NAME["gt_number"], value)
    made = None if mask is None else build.emit("where", left, mask, right)
    if build.draw.chance(50):
        reduction(build, made)


def written_under_mask(build: Builder) -> None:
    """An in-place write under a mask, then a reduction of what was written."""
    value = pointwise(build, operand(build))
    if value is None:
        return
    made = build.apply(BY_NAME[build.draw.choice(("masked_fill_", "set_masked", "clamp_", "masked_fill"))], value)
    reduction(build, made)


def causal(build: Builder) -> None:
    """The triangle of a matrix, then a reduction or a scan."""
    value = operand(build, 2)
    if value is None or build.type_of(value).rank < 2:
        return
    made = build.emit(build.draw.choice(("tril", "triu")), value, k=build.draw.choice((0, 1, -1)))
    if made is not None and build.draw.chance(30):
        build.emit("cumsum", made, dim=-1)
    else:
        reduction(build, made)


IDIOMS: tuple[Idiom, ...] = (
    Idiom(masked_softmax, 3),
    Idiom(masked_mean, 3),
    Idiom(two_sides, 3),
    Idiom(written_under_mask, 4),
    Idiom(causal, 2),
)
grow = growth(Family.MASKING, IDIOMS)
