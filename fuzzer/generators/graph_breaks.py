"""Idioms of graph breaks: reduce to a number, leave the graph with it, come back."""

from __future__ import annotations

from fuzzer.generators.builder import Builder
from fuzzer.generators.growth import Idiom, growth, pointwise
from fuzzer.ops import BY_NAME, Family
from fuzzer.program import DType, ScalarType

_WHOLE = ("sum_all", "argmax_all", "amax_all", "amin_all")
_USES = ("scale", "shift", "branch", "choose", "scale_down", "loop", "slice_sum", "slice_amax", "select_by_item")
_USES_OF_INTEGERS = ("loop", "slice_sum", "slice_amax", "select_by_item", "scale", "branch")


def number(build: Builder, whole: bool = False) -> str | None:
    """A Python number: the item of a full reduction of a live value."""
    value = build.pick_tensor(lambda kind: not whole or not kind.dtype.is_floating) or build.add_main_input()
    if value is None:
        return None
    if build.type_of(value).numel > 1:
        op = build.draw.choice(_WHOLE)
        if whole and build.type_of(value).dtype.is_floating:
            op = "argmax_all"
        if build.type_of(value).dtype is DType.BOOL:
            op = build.draw.choice(("sum_all", "any_all"))
        value = build.emit(op, value)
    return None if value is None else build.emit("item", value)


def used_number(build: Builder) -> None:
    """A number that leaves the graph and is used as a factor, a condition or a bound."""
    live = build.pick(lambda kind: isinstance(kind, ScalarType))
    found = live if live is not None and build.draw.chance(35) else number(build)
    if found is None:
        return
    kind = build.scope.types[found]
    uses = _USES_OF_INTEGERS if kind.dtype is DType.INT64 and build.draw.chance(60) else _USES
    made = build.apply(BY_NAME[build.draw.choice(uses)])
    if build.draw.chance(40):
        pointwise(build, made)


def position_used(build: Builder) -> None:
    """A position that leaves the graph bounds a slice."""
    if number(build, whole=True) is not None:
        build.apply(BY_NAME[build.draw.choice(_USES_OF_INTEGERS)])


def truth_used(build: Builder) -> None:
    """A tensor's truth decides which of two values goes on."""
    value = build.pick_tensor(lambda kind: kind.dtype is not DType.BOOL) or build.add_main_input()
    if value is None:
        return
    mask = build.apply(BY_NAME["gt_number"], value)
    flag = None if mask is None else build.emit(build.draw.choice(("any_all", "all_all")), mask)
    if flag is None:
        return
    if build.draw.chance(50):
        build.apply(BY_NAME["choose_tensor"])
    elif build.emit("item", flag) is not None:
        build.apply(BY_NAME["choose_truth"])


def ragged(build: Builder) -> None:
    """Pieces of a batch whose lengths leave the graph through tolist."""
    build.apply(BY_NAME[build.draw.choice(("ragged_sum", "ragged_scale", "ragged_repeat", "weighted_sum"))])


IDIOMS: tuple[Idiom, ...] = (
    Idiom(used_number, 6),
    Idiom(position_used, 2),
    Idiom(truth_used, 2),
    Idiom(ragged, 3),
)
grow = growth(Family.GRAPH_BREAKS, IDIOMS)
