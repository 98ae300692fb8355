"""Sizes that are products of others, because a statement splits or joins dims: when one changes, others follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from fuzzer.program import Program, TensorType

Product: TypeAlias = "tuple[int, tuple[int, ...]]"
"""A size and the factors that it is split into, such as `(1200, (4, 300))`."""


def products(program: Program) -> tuple[Product, ...]:
    """Sizes that are products of others, because a statement splits or joins dims: (size, factors)."""
    types = program.types
    found: dict[Product, None] = {}
    for node in program.nodes:
        for name in node.args:
            before = types[name]
            if not isinstance(before, TensorType) or not isinstance(node.type, TensorType):
                continue
            if before.numel == node.type.numel:
                for left, right in _groups(before.shape, node.type.shape):
                    for whole, parts in ((left, right), (right, left)):
                        if len(whole) == 1 and len(parts) > 1:
                            found[whole[0], parts] = None
    return tuple(found)


def _groups(left: tuple[int, ...], right: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cut two shapes of one element count into the shortest runs of equal products; sizes of 1 are left out."""
    one, other = [size for size in left if size != 1], [size for size in right if size != 1]
    while one and other:
        i = j = 1
        while prod(one[:i]) != prod(other[:j]):
            if prod(one[:i]) < prod(other[:j]):
                i += 1
            else:
                j += 1
        yield tuple(one[:i]), tuple(other[:j])
        one, other = one[i:], other[j:]


def follow(sizes: Mapping[int, int], equations: Sequence[Product]) -> dict[int, int] | None:
    """`sizes` and what follows from it through `equations`; None where they contradict each other."""
    closed = dict(sizes)
    for _ in range(len(equations) + 1):
        grown = False
        for whole, parts in equations:
            product_now = prod(closed.get(part, part) for part in parts)
            wanted = closed.get(whole, whole)
            if product_now == wanted:
                continue
            if whole not in closed:
                closed[whole] = product_now
            elif not (free := [part for part in parts if part not in closed and parts.count(part) == 1]):
                return None
            else:
                factor = free[-1]
                others = product_now // factor
                if wanted % others:
                    return None
                closed[factor] = wanted // others
            grown = True
        if not grown:
            return closed
    return None
