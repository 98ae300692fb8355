"""Programs made of one operator, drawn without Hypothesis so that a failing number can be replayed."""

from __future__ import annotations

from random import Random

from fuzzer.generators.builder import Builder
from fuzzer.generators.draw import Choices
from fuzzer.generators.policy import Policy, SizeClass
from fuzzer.ops import FAMILIES, OpSpec, Trait
from fuzzer.program import DType, Mode, Program, Regime, TensorType
from fuzzer.retype import without_dead

_DTYPES = (
    DType.FLOAT32,
    DType.FLOAT32,
    DType.INT64,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT32,
    DType.FLOAT64,
    DType.BOOL,
)


class RandomChoices(Choices):
    """A `Draw` on top of the standard library."""

    def __init__(self, number: int) -> None:
        self._random = Random(number)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def policy(draw: Choices, regime: Regime | None = None) -> Policy:
    """Small shapes, any dtype, any layout."""
    return Policy(
        families=tuple((family, 1) for family in FAMILIES),
        idioms=0,
        sizes=draw.choice((SizeClass.SMALL, SizeClass.BOUNDARY)),
        dtype=draw.choice(_DTYPES),
        mixed=40,
        regime=regime or draw.choice((Regime.NORMAL, Regime.EXACT, Regime.SPARSE, Regime.ONES)),
        strided=30,
        steps=1,
        late=0,
        fresh=50,
        in_place=100,
        outputs=1,
        mode=Mode(),
    )


def populated(spec: OpSpec, draw: Choices, regime: Regime | None) -> Builder:
    """A few values of every kind that this operator may want."""
    build = Builder(draw, policy(draw, regime))
    build.add_main_input(build.policy.dtype)
    whole = build.add_main_input(draw.choice((DType.INT64, DType.INT32)))
    build.add_main_input(draw.choice((DType.FLOAT32, DType.FLOAT16)))
    build.add_input(TensorType(shape=(3, 2), dtype=DType.INT64, high=5), Regime.INDEX)
    build.add_input(TensorType(shape=(4, 1), dtype=DType.BOOL))
    if any(slot.name in ("v", "flag") for slot in spec.slots) or spec.name == "item":
        for op in ("sum_all", "any_all"):
            folded = None if whole is None else build.emit(op, whole)
            if folded is not None:
                build.emit("item", folded)
    if Trait.MUTATES in spec.traits:
        for spec_of in build.inputs[:2]:
            build.emit("clone", spec_of.name)
    return build


def _ending_in(build: Builder, name: str) -> Program:
    return without_dead(Program(inputs=tuple(build.inputs), nodes=tuple(build.nodes), outputs=(name,)))


def program_of(spec: OpSpec, number: int, regime: Regime | None = None) -> Program | None:
    """A program whose last statement is this operator; None when the draw found no arguments for it."""
    build = populated(spec, RandomChoices(number), regime)
    for _ in range(4):
        name = build.apply(spec)
        if name is not None:
            return _ending_in(build, name)
    return None


def misused(spec: OpSpec, number: int) -> Program | None:
    """Like `program_of`, but the arguments are any live values, as an edit may choose them; None if refused."""
    draw = RandomChoices(number)
    build = populated(spec, draw, None)
    names = list(build.scope.types)
    for _ in range(12):
        args = [draw.choice(names) for _ in spec.slots]
        drawn = build.scope.types[args[0] if draw.chance(80) else draw.choice(names)]
        params = spec.draw(draw, drawn) if isinstance(drawn, TensorType) else None
        name = None if params is None else build.emit_with(spec, args, params)
        if name is not None:
            return _ending_in(build, name)
    return None
