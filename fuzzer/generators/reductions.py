"""Idioms of reductions: what stands beside one, before one and behind one in real models."""

from __future__ import annotations

from fuzzer.generators.builder import Builder
from fuzzer.generators.growth import Idiom, growth, operand, pointwise, pointwise_pair, reduction
from fuzzer.ops import Family
from fuzzer.program import TensorType


def beside(build: Builder) -> None:
    """A pointwise result that is returned beside a reduction of it: one kernel, two outputs."""
    made = pointwise_pair(build, operand(build))
    if made is not None:
        build.kept.append(made)
        reduction(build, made)


def epilogue(build: Builder) -> None:
    """Pointwise arithmetic behind a reduction, as in a loss or a norm."""
    folded = reduction(build, operand(build), whole=build.draw.chance(50))
    for _ in range(build.draw.integer(1, 3)):
        folded = pointwise(build, folded)


def siblings(build: Builder) -> None:
    """Two reductions of one value."""
    value = operand(build)
    reduction(build, value)
    reduction(build, value)


def centered(build: Builder) -> None:
    """A value and its own reduction, broadcast back over it."""
    value = operand(build)
    if value is None:
        return
    folded = reduction(build, value, keepdim=True)
    if folded is not None:
        made = build.emit(build.draw.choice(("sub", "mul", "add", "safe_div")), value, folded)
        if made is not None and build.draw.chance(60):
            reduction(build, made)


def stacked(build: Builder) -> None:
    """A reduction of a softmax or a scan."""
    value = operand(build)
    if value is None or not build.type_of(value).rank:
        return
    op = build.draw.choice(("softmax", "cumsum", "log_softmax"))
    dim = build.draw.integer(0, build.type_of(value).rank - 1)
    made = build.emit(op, value, dim=dim)
    if made is not None:
        reduction(build, made)


def positions(build: Builder) -> None:
    """Integer arithmetic on what a reduction or a scan found: the buffer is reused in place."""
    value = operand(build)
    if value is None or not build.type_of(value).rank:
        return
    dim = build.draw.integer(0, build.type_of(value).rank - 1)
    op = build.draw.choice(("argmax", "cumsum", "argmin", "max_indices", "count_nonzero"))
    made = build.emit(op, value, dim=dim)
    if op == "cumsum" and made is not None and build.draw.chance(50):
        made = build.emit("argmax", made, dim=dim)
    for _ in range(build.draw.integer(1, 3)):
        made = pointwise(build, made)


def weighted_sum(build: Builder) -> None:
    """The sum of products, over the leading dims: the gradient of a weight."""
    value = operand(build)
    if value is None:
        return
    shape = build.type_of(value).shape
    scale = build.add_input(TensorType(shape=shape[-1:], dtype=build.type_of(value).dtype))
    product = None if scale is None else build.emit("mul", value, scale)
    if product is None:
        return
    if build.draw.chance(40):
        build.kept.append(product)
    build.emit("sum", product, dim=tuple(range(len(shape) - 1)) if len(shape) > 2 else 0)


IDIOMS: tuple[Idiom, ...] = (
    Idiom(beside, 9),
    Idiom(epilogue, 5),
    Idiom(siblings, 2),
    Idiom(centered, 3),
    Idiom(stacked, 3),
    Idiom(positions, 3),
    Idiom(weighted_sum, 4),
)
grow = growth(Family.REDUCTIONS, IDIOMS)
