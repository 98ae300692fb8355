"""Passes over shapes: fewer dims, smaller sizes, smaller index bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fuzzer.minimize.draft import Draft, draft
from fuzzer.minimize.refit import drop_dim, resize, resize_dim
from fuzzer.program import Program, Regime, TensorType


def drop_dims(program: Program) -> Iterator[Draft]:
    """Take one dim away: from every input that has it, counted from the right; or from one input alone."""
    tried: set[tuple[tuple[str, int], ...]] = set()
    for leader in program.inputs:
        for dim in range(leader.type.rank):
            place, size = leader.type.rank - dim, leader.type.shape[dim]
            together = {
                spec.name: spec.type.rank - place
                for spec in program.inputs
                if spec.type.rank >= place and spec.type.shape[spec.type.rank - place] in (1, size)
            }
            for dims in (together, {leader.name: dim}):
                key = tuple(sorted(dims.items()))
                if key not in tried:
                    tried.add(key)
                    if (edited := drop_dim(program, dims)) is not None:
                        yield edited


def shrink_sizes(program: Program) -> Iterator[Draft]:
    """Give one size a smaller value, everywhere at once; sizes that account for most elements first."""
    shares: dict[int, int] = {}
    for kind in program.types.values():
        if isinstance(kind, TensorType):
            for size in set(kind.shape):
                shares[size] = shares.get(size, 0) + kind.numel
    for size in sorted(shares, key=lambda size: (-shares[size], size)):
        for smaller in ladder(size):
            if (edited := resize(program, size, smaller)) is not None:
                yield edited


def shrink_dims(program: Program) -> Iterator[Draft]:
    """Give one dim of one input a smaller size, where it stands alone."""
    for position, spec in enumerate(program.inputs):
        for dim, size in enumerate(spec.type.shape):
            for smaller in ladder(size):
                if (edited := resize_dim(program, position, dim, smaller)) is not None:
                    yield edited


def shrink_highs(program: Program) -> Iterator[Draft]:
    """Give one input of bounded integers a smaller bound."""
    for position, spec in enumerate(program.inputs):
        if spec.type.high is not None and spec.regime not in (Regime.UNIQUE, Regime.LENGTHS):
            for smaller in (2, spec.type.high // 2):
                if smaller < spec.type.high:
                    changed = replace(spec, type=replace(spec.type, high=smaller))
                    inputs = (*program.inputs[:position], changed, *program.inputs[position + 1 :])
                    yield draft(program, inputs=inputs)


def ladder(value: int) -> tuple[int, ...]:
    """Smaller values, such that taking the first that holds, again and again, is a binary search.

    2, then half of `value`, three quarters, and so on up to `value - 1`. Not 1: a dim that does not matter goes as a
    whole, and one of size 1 is special to broadcasting, reductions and layouts.
    """
    steps = [value - (value >> shift) for shift in range(1, value.bit_length())]
    return tuple(dict.fromkeys(smaller for smaller in (2, *steps) if 1 < smaller < value))
