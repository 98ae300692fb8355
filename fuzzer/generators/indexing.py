"""Idioms of advanced indexing: look up, mask, reduce, and write back."""

from __future__ import annotations

from fuzzer.generators.builder import Builder
from fuzzer.generators.growth import Idiom, growth, operand, pointwise, pointwise_pair, reduction
from fuzzer.ops import BY_NAME, Family
from fuzzer.program import DType, TensorType

_LOOKUPS = ("index_0", "index_1", "gather", "index_select", "embedding", "take_along_dim", "index_01", "take")


def looked_up(build: Builder) -> None:
    """Look up rows, blank some of them, and reduce: the masked sum of an embedding or of token ids."""
    table = operand(build)
    if table is None:
        return
    found = build.apply(BY_NAME[build.draw.choice(_LOOKUPS)], table)
    if found is None:
        return
    masked = build.apply(BY_NAME[build.draw.choice(("masked_fill", "where_number", "masked_fill_"))], found) or found
    if build.draw.chance(30):
        masked = pointwise(build, masked) or masked
    if build.type_of(masked).rank:
        reduction(build, masked)


def written_back(build: Builder) -> None:
    """Look up rows, work on them, and add or write them back by the same index."""
    table = build.pick_tensor(lambda kind: 1 <= kind.rank <= 3 and kind.dtype not in (DType.BOOL, DType.INT32))
    if table is None:
        table = build.add_main_input()
    if table is None or not build.type_of(table).rank:
        return
    ids = build.pick_tensor(
        lambda kind: kind.rank == 1 and kind.high is not None and kind.high <= build.type_of(table).shape[0]
    )
    if ids is None:
        size = build.type_of(table).shape[0]
        count = build.draw.integer(1, min(size, 16))
        ids = build.add_input(TensorType(shape=(count,), dtype=DType.INT64, high=size))
    rows = None if ids is None else build.emit("index_select", table, ids, dim=0)
    worked = pointwise(build, rows)
    if ids is not None and worked is not None and build.type_of(worked).dtype is build.type_of(table).dtype:
        written = build.emit("index_add", table, ids, worked, dim=0)
        if written is not None and build.draw.chance(50):
            reduction(build, written)


def chosen_by_argmax(build: Builder) -> None:
    """Use the positions that a reduction found as an index."""
    value = operand(build)
    if value is None or build.type_of(value).rank < 2:
        return
    dim = build.draw.integer(0, build.type_of(value).rank - 1)
    best = build.emit("argmax_keepdim", value, dim=dim)
    if best is not None:
        taken = build.emit("take_along_dim", value, best, dim=dim)
        if taken is not None:
            pointwise_pair(build, value, taken)


def shifted(build: Builder) -> None:
    """Arithmetic between neighbouring slices of one value."""
    value = build.pick_tensor(lambda kind: kind.rank >= 1 and kind.shape[0] > 1 and kind.dtype is not DType.BOOL)
    if value is None:
        return
    size = build.type_of(value).shape[0]
    left = build.emit("narrow", value, dim=0, start=0, size=size - 1)
    right = build.emit("narrow", value, dim=0, start=1, size=size - 1)
    if left is not None and right is not None:
        made = pointwise_pair(build, left, right)
        if build.draw.chance(50):
            reduction(build, made)


IDIOMS: tuple[Idiom, ...] = (
    Idiom(looked_up, 8),
    Idiom(written_back, 3),
    Idiom(chosen_by_argmax, 2),
    Idiom(shifted, 2),
)
grow = growth(Family.INDEXING, IDIOMS)
