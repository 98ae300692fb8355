"""Random programs: the same seed and index give the same program, byte for byte, with the same Hypothesis version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from fuzzer.generators import graph_breaks, indexing, masking, permutes, reductions
from fuzzer.generators.builder import Builder
from fuzzer.generators.draw import Choices
from fuzzer.generators.growth import Growth, growth
from fuzzer.generators.policy import draw_policy
from fuzzer.ops import Family
from fuzzer.program import FuzzerError, Program

GROWTHS: Mapping[Family, Growth] = {
    Family.POINTWISE: growth(Family.POINTWISE, ()),
    Family.REDUCTIONS: reductions.grow,
    Family.PERMUTES: permutes.grow,
    Family.INDEXING: indexing.grow,
    Family.MASKING: masking.grow,
    Family.GRAPH_BREAKS: graph_breaks.grow,
}
FAMILIES: tuple[Family, ...] = tuple(family for family in Family if family is not Family.POINTWISE)
"""What a campaign may be restricted to; pointwise arithmetic always takes part."""
_BYTES = 6000
"""More choices than any program takes."""


@st.composite
def programs(draw: DrawFn, families: Sequence[Family] = FAMILIES) -> Program:
    """Programs of these families."""
    choices = Choices(draw)
    policy = draw_policy(choices, families)
    build = Builder(choices, policy)
    build.add_main_input(policy.dtype)
    for _ in range(2 * policy.steps):
        if len(build.nodes) >= policy.steps:
            break
        draw(GROWTHS[choices.weighted(policy.families)](build))
    program = build.finish()
    assume(program is not None)
    assert program is not None
    return program


@cache
def _from_bytes(families: tuple[Family, ...]) -> Callable[[bytes], Program | None]:
    found: list[Program] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs(families))
    def collect(program: Program) -> None:
        found.append(program)

    run: Callable[[bytes], object] = collect.hypothesis.fuzz_one_input  # type: ignore[attr-defined]  # set by @given

    def decode(data: bytes) -> Program | None:
        found.clear()
        run(data)
        return found[-1] if found else None

    return decode


def program_from_bytes(data: bytes, families: Sequence[str] = FAMILIES) -> Program | None:
    """The program that these bytes choose, for a coverage-guided fuzzer; None when they choose none."""
    return _from_bytes(_known(families))(data)


def generate(seed: int, index: int, families: Sequence[str] = FAMILIES) -> Program:
    """Program number `index` of a campaign. Raises FuzzerError for a family that there is not."""
    chosen = _known(families)
    for attempt in range(100):
        key = sha256(f"{seed} {index} {attempt}".encode()).digest()
        program = _from_bytes(chosen)(Random(int.from_bytes(key, "big")).randbytes(_BYTES))
        if program is not None:
            return program
    raise FuzzerError(f"seed {seed}, index {index}: no program in 100 attempts; the generators are at fault")


def _known(families: Sequence[str]) -> tuple[Family, ...]:
    unknown = [name for name in families if name not in set(FAMILIES)]
    if unknown or not families:
        raise FuzzerError(f"no family {unknown}; there are {', '.join(FAMILIES)}")
    return tuple(family for family in FAMILIES if family in families)


__all__ = ["FAMILIES", "generate", "program_from_bytes", "programs"]
