"""How a family adds to a program: one statement, or one idiom; and the small steps that idioms share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


def reduction(build: Builder, value: str | None, keepdim: bool = False, whole: bool = False) -> str | None:
    """A reduction of the value; over a long program's first dims more often than by chance."""
    if value is None:
        return None
    found = build.type_of(value)
    name = build.draw.weighted(_FOLDS)
    if not found.dtype.is_floating and name in ("mean", "var", "logsumexp"):
        name = "sum"
    if whole and name + "_all" in BY_NAME:
        return build.emit(name + "_all", value)
    if not found.rank:
        return None
    if found.dtype is DType.BOOL and name not in ("sum", "any"):
        name = "sum"
    if keepdim or build.draw.chance(15):
        name += "_keepdim"
    if build.is_long and found.rank > 1 and name in ("sum", "mean") and build.draw.chance(50):
        dims = tuple(range(found.rank - 1))
        return build.emit(name, value, dim=dims if len(dims) > 1 else 0)
    return build.apply(BY_NAME[name], value)
