"""How a family adds to a program: one statement, or one idiom; and the small steps that idioms share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzzer.generators.builder import Builder
from fuzzer.generators.draw import Choices
from fuzzer.ops import BY_NAME, FAMILIES, Family, OpSpec
from fuzzer.program import DType

Growth: TypeAlias = Callable[[Builder], SearchStrategy[None]]
"""A strategy that grows a partial program in place by a step."""


@dataclass(frozen=True, slots=True)
class Idiom:
    """Several statements that belong together."""

    add: Callable[[Builder], None]
    weight: int


def weighted_ops(family: Family) -> tuple[tuple[OpSpec, int], ...]:
    """The operators of a family that are drawn on their own."""
    return tuple((spec, spec.weight) for spec in FAMILIES[family])


def growth(family: Family, idioms: tuple[Idiom, ...]) -> Growth:
    """The strategy of one family."""
    ops = weighted_ops(family)
    options = tuple((idiom, idiom.weight) for idiom in idioms)

    @st.composite
    def step(draw: DrawFn, build: Builder) -> None:
        choices = Choices(draw)
        before = build.draw
        build.draw = choices
        if options and choices.chance(build.policy.idioms):
            choices.weighted(options).add(build)
        else:
            build.apply(choices.weighted(ops))
        build.draw = before

    return step


_UNARY = (
    ("relu", 3),
    ("abs", 4),
    ("mul_number", 5),
    ("add_number", 5),
    ("neg", 2),
    ("square", 3),
    ("sigmoid", 2),
    ("exp", 2),
    ("root", 2),
    ("safe_rsqrt", 1),
    ("tanh", 1),
    ("add_number_", 2),
    ("cast", 1),
    ("number_minus", 1),
    ("relu_", 1),
)
_BINARY = (("mul", 6), ("add", 5), ("sub", 4), ("maximum", 1), ("safe_div", 1))
_LONG_FOLDS = (("sum", 10), ("mean", 3), ("amax", 1), ("var", 1))
_FOLDS = (("sum", 10), ("mean", 3), ("amax", 3), ("amin", 1), ("var", 1), ("logsumexp", 1), ("argmax", 1), ("any", 1))


def pointwise(build: Builder, value: str | None) -> str | None:
    """A one-argument pointwise statement on the value, or the value itself where none fits."""
    if value is None:
        return None
    return build.apply(BY_NAME[build.draw.weighted(_UNARY)], value) or value


def pointwise_pair(build: Builder, value: str | None, other: str | None = None) -> str | None:
    """A two-argument pointwise statement on the value and another."""
    if value is None:
        return None
    spec = BY_NAME[build.draw.weighted(_BINARY)]
    if other is not None:
        return build.emit(spec.name, value, other)
    return build.apply(spec, value)


def long_folds(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The runs of dims that fold at least 2,048 elements, and no fewer than there are results."""
    total, rank = prod(shape), len(shape)
    runs = [tuple(range(start, end)) for start in range(rank) for end in range(start + 1, rank + 1)]
    sizes = [(dims, prod(shape[dim] for dim in dims)) for dims in runs]
    return [dims for dims, size in sizes if size >= 2048 and size >= total // size]


def reduction(build: Builder, value: str | None, keepdim: bool = False, whole: bool = False) -> str | None:
    """A reduction of the value; where that can be, mostly one that folds at least 2,048 elements."""
    if value is None:
        return None
    found = build.type_of(value)
    folds = long_folds(found.shape) if build.is_long else []
    long = bool(folds) and build.draw.chance(75)
    name = build.draw.weighted(_LONG_FOLDS if long else _FOLDS)
    if not found.dtype.is_floating and name in ("mean", "var", "logsumexp"):
        name = "sum"
    if found.dtype is DType.BOOL and name not in ("sum", "any"):
        name = "sum"
    if whole and name + "_all" in BY_NAME:
        return build.emit(name + "_all", value)
    if not found.rank:
        return None
    if keepdim or build.draw.chance(15):
        name += "_keepdim"
    if long:
        dims = build.draw.choice(folds)
        return build.emit(name, value, dim=dims if len(dims) > 1 else dims[0])
    return build.apply(BY_NAME[name], value)


def operand(build: Builder, rank: int = 1) -> str | None:
    """A live tensor of numbers; in a program made for split reductions, mostly one that has not been reduced yet."""
    if build.is_long and build.draw.chance(75):
        full = prod(build.main_shape)
        found = build.pick_tensor(
            lambda kind: kind.rank >= rank and kind.dtype is not DType.BOOL and kind.numel >= full // 2
        )
        if found is not None:
            return found
    found = build.pick_tensor(lambda kind: kind.rank >= rank and kind.dtype is not DType.BOOL)
    return found or build.add_main_input()
