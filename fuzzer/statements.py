"""Python statements -> nodes: each is an operator's template; nested expressions are taken apart first.

`return x, x.masked_fill(mask, 0).sum(-1)` is read as a person means it: the inner calls get names of their own. So are
a call whose result is dropped (`x.add_(1)`) and a name that is assigned twice.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cache

from fuzzer.ops import OPS, IllTyped, OpSpec, template_of
from fuzzer.program import FuzzerError, InputSpec, Node, Program
from fuzzer.retype import Scope
from fuzzer.template import Match, head_of


@cache
def _by_head() -> Mapping[str, tuple[OpSpec, ...]]:
    """The operators by the outermost operation of their templates; those of several statements first."""
    found: dict[str, list[OpSpec]] = {}
    for spec in OPS:
        found.setdefault(template_of(spec.name).head, []).append(spec)
    return {
        head: tuple(sorted(specs, key=lambda spec: -len(template_of(spec.name).statements)))
        for head, specs in found.items()
    }


class _Renamed(ast.NodeTransformer):
    """Puts the latest definition of a name where the name is read."""

    def __init__(self, latest: Mapping[str, str]) -> None:
        self._latest = latest

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if isinstance(node.ctx, ast.Load) and node.id in self._latest:
            return ast.copy_location(ast.Name(id=self._latest[node.id], ctx=node.ctx), node)
        return node


class StatementReader:
    """Reads the statements of a program, in order, into typed nodes."""

    def __init__(self, inputs: Sequence[InputSpec], taken: set[str]) -> None:
        self._scope = Scope()
        self._taken = taken
        self._latest: dict[str, str] = {}
        self.made: set[str] = set()
        """Names that the reader chose."""
        self.inputs = tuple(self._scope.add_input(spec) for spec in inputs)

    def read(self, body: Sequence[ast.stmt]) -> list[Node]:
        """The nodes of these statements; raises FuzzerError with the line, the text and the remedy."""
        nodes: list[Node] = []
        plain = [self._plain(statement) for statement in body]
        where = 0
        while where < len(plain):
            found, taken = self._read_one(plain, where)
            nodes += found
            where += taken
        return nodes

    def read_results(self, results: Sequence[ast.expr]) -> tuple[tuple[str, ...], list[Node]]:
        """The names of what a program returns, and the nodes of the expressions among it."""
        names: list[str] = []
        nodes: list[Node] = []
        for result in results:
            result = _Renamed(self._latest).visit(result)
            if isinstance(result, ast.Name) and result.id not in self._scope.types:
                raise FuzzerError(f"line {result.lineno}: program() returns {result.id}, which is not defined")
            if isinstance(result, ast.Name):
                names.append(result.id)
            else:
                name = self._fresh()
                nodes += self.read([_assignment(name, result)])
                names.append(name)
        return tuple(names), nodes

    def _fresh(self) -> str:
        number = 0
        while f"t{number}" in self._taken:
            number += 1
        self._taken.add(f"t{number}")
        self.made.add(f"t{number}")
        return f"t{number}"

    def _plain(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, ast.Expr):
            return _assignment(self._fresh(), statement.value)
        return statement

    def _read_one(self, body: Sequence[ast.stmt], where: int) -> tuple[list[Node], int]:
        """The nodes of the statement that starts there, and how many Python statements it takes."""
        candidates = _by_head().get(head_of(body[where]), ())
        longest = max((len(template_of(spec.name).statements) for spec in candidates), default=1)
        statements = [_Renamed(self._latest).visit(statement) for statement in body[where : where + longest]]
        problem = "no operator is written like this"
        for nested in (False, True):
            matches = [
                (spec, template_of(spec.name).match(statements, 0, self._fresh if nested else None))
                for spec in candidates
            ]
            found = [(spec, match) for spec, match in matches if match is not None]
            for spec, match in sorted(found, key=lambda pair: len(pair[1].nested)):
                before = self._scope.copy()
                try:
                    return self._add(spec, match, statements[0]), len(template_of(spec.name).statements)
                except IllTyped as reason:
                    self._scope = before
                    problem = f"{spec.name}: {reason}"
        raise FuzzerError(
            f"line {statements[0].lineno}: {ast.unparse(statements[0])}: {problem}; "
            "write calls of the operators of fuzzer/ops on names and literals"
        )

    def _add(self, spec: OpSpec, match: Match, statement: ast.stmt) -> list[Node]:
        nodes: list[Node] = []
        for name, expression in match.nested.items():
            nodes += self.read([ast.copy_location(_assignment(name, expression), statement)])
        args = [match.names[slot.name] for slot in spec.slots]
        params = [(name, match.literals[name]) for name in template_of(spec.name).params]
        name = match.names["out"]
        if name in self._scope.types:
            self._latest[name] = name = self._fresh()
        return [*nodes, self._scope.add_node(name, spec.name, args, params)]


def _assignment(name: str, value: ast.expr) -> ast.Assign:
    target = ast.Name(id=name, ctx=ast.Store())
    return ast.copy_location(ast.Assign(targets=[target], value=value), value)


def in_order(program: Program, made: Set[str]) -> Program:
    """The program with the names that the reader chose numbered in the order of their definition."""
    chosen = [node.name for node in program.nodes if node.name in made]
    names = {name: f"t{number}" for number, name in enumerate(chosen)}
    if any(new in program.types and new not in names for new in names.values()):
        return program

    def renamed(old: str) -> str:
        return names.get(old, old)

    nodes = (replace(node, name=renamed(node.name), args=tuple(map(renamed, node.args))) for node in program.nodes)
    return replace(program, nodes=tuple(nodes), outputs=tuple(map(renamed, program.outputs)))
