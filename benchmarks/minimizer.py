"""Evaluations that it takes to shrink generated programs with planted defects to the statements that matter.

A planted defect is a predicate over the program alone, made from a generated program that shows it: a chain of
statements that feed each other, a pair that does not, a chain on enough elements, an output beside a reduction of it.
No target runs, so the figures are evaluations (each costs about a second on the simulator), not seconds.

    python -m benchmarks.minimizer [--programs N] [--seed S] [--evaluations LIMIT]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from fuzzer.generators import generate
from fuzzer.minimize import Budget, Minimized, minimize
from fuzzer.ops import BY_NAME, Family
from fuzzer.program import Mode, Node, Program, ScalarType, TensorType, Type

Holds = Callable[[Program], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A defect that a program shows, and how few statements suffice to show it."""

    kind: str
    program: Program
    holds: Holds
    minimum: int


def chains(program: Program, ops: Sequence[str]) -> Iterator[tuple[Node, ...]]:
    """Statements of these operators of which each uses the one before."""
    nodes = {node.name: node for node in program.nodes}

    def ending(node: Node, rest: Sequence[str]) -> Iterator[tuple[Node, ...]]:
        if not rest:
            yield (node,)
            return
        for name in node.args:
            if name in nodes and nodes[name].op == rest[-1]:
                for before in ending(nodes[name], rest[:-1]):
                    yield (*before, node)

    for node in program.nodes:
        if node.op == ops[-1]:
            yield from ending(node, ops[:-1])


def elements(program: Program, node: Node) -> int:
    """How many elements the statement's first operand has."""
    kind = program.types[node.args[0]]
    return kind.numel if isinstance(kind, TensorType) else 1


def fewest(program: Program, wanted: Sequence[Node]) -> int:
    """How many statements a program with the wanted ones has: they, and `.item()` where they need a number."""
    made = {node.name for node in wanted}
    given = {kind.dtype for node in wanted if isinstance(kind := node.type, ScalarType)}
    used = [program.types[name] for node in wanted for name in node.args if name not in made]
    missing = {kind.dtype for kind in used if isinstance(kind, ScalarType)} - given
    return len(made) + len(missing)


def plant(program: Program, random: Random) -> Iterator[Planted]:
    """One defect of each kind that the program can show."""
    nodes = {node.name: node for node in program.nodes}
    pairs = [(nodes[name], node) for node in program.nodes for name in node.args if name in nodes]
    triples = [(nodes[name], *pair) for pair in pairs for name in pair[0].args if name in nodes]
    if pairs:
        pair = random.choice(pairs)
        ops, least = tuple(node.op for node in pair), fewest(program, pair)
        yield Planted(kind="chain of 2", program=program, holds=_chained(ops, 0), minimum=least)
        enough = _chained(ops, max(1, elements(program, pair[-1]) // 3))
        yield Planted(kind="chain of 2, sized", program=program, holds=enough, minimum=least)
        exactly = _typed(ops, program.types[pair[-1].args[0]], program.mode)
        yield Planted(kind="chain of 2, same type", program=program, holds=exactly, minimum=least)
    if triples:
        triple = random.choice(triples)
        chained = _chained(tuple(node.op for node in triple), 0)
        yield Planted(kind="chain of 3", program=program, holds=chained, minimum=fewest(program, triple))
    if len({node.op for node in program.nodes}) > 3:
        two = random.sample([*{node.op: node for node in program.nodes}.values()], 2)
        both = _scattered(two[0].op, two[1].op)
        yield Planted(kind="scattered pair", program=program, holds=both, minimum=fewest(program, two))
    if _output_beside_its_reduction(program):
        yield Planted(kind="output and its reduction", program=program, holds=_output_beside_its_reduction, minimum=2)


def _chained(ops: Sequence[str], needed: int) -> Holds:
    return lambda program: any(elements(program, chain[-1]) >= needed for chain in chains(program, ops))


def _typed(ops: Sequence[str], needs: Type, mode: Mode) -> Holds:
    """The chain, on the very shape, dtype and mode: nothing but statements and inputs can go."""
    return lambda program: (
        program.mode == mode and any(program.types[chain[-1].args[0]] == needs for chain in chains(program, ops))
    )


def _scattered(one: str, other: str) -> Holds:
    return lambda program: {one, other} <= {node.op for node in program.nodes}


def _output_beside_its_reduction(program: Program) -> bool:
    """A value that is not an input is returned, and so is a reduction of at least 64 elements of it."""
    made = {node.name for node in program.nodes}
    return any(
        node.name in program.outputs
        and BY_NAME[node.op].family is Family.REDUCTIONS
        and node.args[0] in made
        and node.args[0] in program.outputs
        and elements(program, node) >= 64
        for node in program.nodes
    )


def measure(planted: Planted, limit: int) -> Minimized:
    """Minimize one planted defect."""

    def interesting(candidates: Sequence[Program]) -> list[bool]:
        return [planted.holds(candidate) for candidate in candidates]

    return minimize(planted.program, interesting, budget=Budget(evaluations=limit))


def main() -> None:
    """Print one row for each kind of planted defect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200, help="generated programs to plant defects in")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=2000, help="limit for one minimization")
    options = parser.parse_args()

    rows: dict[str, list[tuple[Planted, Minimized]]] = {}
    for index in range(options.programs):
        program = generate(options.seed, index)
        for planted in plant(program, Random(index)):
            rows.setdefault(planted.kind, []).append((planted, measure(planted, options.evaluations)))

    table = Table(
        title=f"evaluations to minimize defects planted in {options.programs} programs of seed {options.seed}"
    )
    for heading in (
        "planted",
        "programs",
        "statements",
        "left",
        "minimal",
        "median",
        "90 %",
        "worst",
        "ms each",
    ):
        table.add_column(heading, justify="left" if heading == "planted" else "right")
    for kind, found in rows.items():
        costs = sorted(result.evaluations for _, result in found)
        reached = sum(len(result.program.nodes) <= planted.minimum for planted, result in found)
        spent = sum(result.seconds for _, result in found) / max(sum(costs), 1)
        table.add_row(
            kind,
            str(len(found)),
            f"{median(len(planted.program.nodes) for planted, _ in found):.0f}",
            f"{median(len(result.program.nodes) for _, result in found):.0f}",
            f"{reached / len(found):.0%}",
            f"{median(costs):.0f}",
            str(costs[len(costs) * 9 // 10]),
            str(costs[-1]),
            f"{1000 * spent:.1f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
