"""What an operator is: one declarative record that says how it prints, what it takes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from fuzzer.backports import StrEnum
from fuzzer.program import DType, Literal, Regime, TensorType, Type

T = TypeVar("T")
Number: TypeAlias = "bool | int | float"


class IllTyped(Exception):
    """Eager would refuse this statement, or its result would not be defined; the text says why."""


class Family(StrEnum):
    """The parts of PyTorch that the generators explore, one module each."""

    POINTWISE = "pointwise"
    REDUCTIONS = "reductions"
    PERMUTES = "permutes"
    INDEXING = "indexing"
    MASKING = "masking"
    GRAPH_BREAKS = "graph_breaks"


class Trait(StrEnum):
    """What the rest of the fuzzer must know about an operator."""

    EXACT = "exact"
    """On integers, in any dtype, the result is integers and is exact as long as it fits the dtype."""
    DISCONTINUOUS = "discontinuous"
    """A rounding error in the argument can change the result by much."""
    ALIASES = "aliases"
    """The result may share the storage of its first argument."""
    ALIASES_SECOND = "aliases second"
    """The result may share the storage of its second argument."""
    OVERLAPS = "overlaps"
    """Several elements of the result may share one place in memory."""
    MUTATES = "mutates"
    """Writes to its first argument, which it returns."""
    CONSTANT = "constant"
    """The result does not depend on the values of its first argument, and has no gradient."""
    SINGULAR = "singular"
    """The gradient, or the value, is ill-conditioned somewhere in the ordinary range: not drawn in training."""


class Source(StrEnum):
    """Where an argument's value must come from, beyond its type."""

    ANYWHERE = "anywhere"
    UNIQUE = "unique"
    """An unmodified input whose values differ from one another."""
    LENGTHS = "lengths"
    """An unmodified input of regime LENGTHS."""


@dataclass(frozen=True, slots=True)
class Params:
    """The literal parameters of a statement, read by kind; a value of another kind is ill-typed."""

    pairs: tuple[tuple[str, Literal], ...] = ()

    @classmethod
    def of(cls, **values: Literal) -> Params:
        return cls(tuple(values.items()))

    def value(self, name: str) -> Literal:
        for key, value in self.pairs:
            if key == name:
                return value
        raise IllTyped(f"parameter {name} is missing")

    def integer(self, name: str) -> int:
        value = self.value(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise IllTyped(f"{name}={value!r} is not an integer")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """A tuple of integers, or one integer as a tuple."""
        value = self.value(name)
        items: tuple[Literal, ...] = value if isinstance(value, tuple) else (value,)
        numbers = tuple(item for item in items if isinstance(item, int) and not isinstance(item, bool))
        if len(numbers) != len(items):
            raise IllTyped(f"{name}={value!r} is not made of integers")
        return numbers

    def number(self, name: str) -> Number:
        value = self.value(name)
        if not isinstance(value, bool | int | float):
            raise IllTyped(f"{name}={value!r} is not a number")
        return value

    def dtype(self, name: str) -> DType:
        value = self.value(name)
        if not isinstance(value, str) or value not in set(DType):
            raise IllTyped(f"{name}={value!r} is not a dtype")
        return DType(value)


class Draw(Protocol):
    """Where choices come from. The first option is the simplest: shrinking moves towards it."""

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high], both included."""
        ...

    def choice(self, options: Sequence[T]) -> T: ...

    def chance(self, percent: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """An input that an argument asks for when no live value fits."""

    type: TensorType
    regime: Regime | None = None
    """None: the policy chooses."""


Types: TypeAlias = "tuple[Type, ...]"
Fits: TypeAlias = Callable[[Type, Types, Params], bool]
"""Does a candidate fit, given the types of the earlier arguments and the parameters?"""
Fresh: TypeAlias = Callable[[Draw, Types, Params], "Wanted | None"]


def nothing_fresh(draw: Draw, seen: Types, params: Params) -> None:
    """No input is made: the argument must be live."""
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One argument: the hole's name in the template, which values fit it, and how to make one."""

    name: str
    fits: Fits
    fresh: Fresh = nothing_fresh
    source: Source = Source.ANYWHERE


def no_params(draw: Draw, x: Type) -> Params:
    """For operators without parameters."""
    return Params()


Grows: TypeAlias = Callable[[Sequence[float], Types, Params], float]


def same_size(sizes: Sequence[float], types: Types, params: Params) -> float:
    """The result is no larger than the largest argument."""
    return max(sizes, default=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSpec:
    """One operator. Adding one is adding a record: generic tests draw, print, parse and run every one."""

    name: str
    family: Family
    template: str
    """PyTorch text with `{slot}` and `{parameter}` holes; `{*name}` spells a tuple without its parentheses. With
    `{out}` in it, it is whole statements, otherwise one expression."""
    slots: tuple[Slot, ...]
    infer: Callable[[Types, Params], Type]
    """Shape, dtype and bound of the result; raises IllTyped where eager would refuse."""
    draw: Callable[[Draw, Type], Params | None] = no_params
    """Parameters for a first argument of this type; None where there are none."""
    traits: frozenset[Trait] = frozenset()
    grows: Grows = same_size
    """Upper bound of the result's absolute values from those of the arguments (finite values only)."""
    weight: int = 4
    """How often it is drawn, relative to its family."""


Registry: TypeAlias = "tuple[OpSpec, ...]"


def by_name(registry: Registry) -> Mapping[str, OpSpec]:
    """Index a registry; raises ValueError when two operators share a name."""
    named = {spec.name: spec for spec in registry}
    if len(named) != len(registry):
        raise ValueError("two operators share a name")
    return named
