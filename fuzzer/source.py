"""Program <-> readable PyTorch source.

    import torch


    def inputs():
        seeded = torch.Generator().manual_seed
        x0 = torch.randn((4, 8), generator=seeded(7))
        mask0 = torch.rand((4, 8), generator=seeded(8)) < 0.5
        return x0, mask0


    def program(x0, mask0):
        v0 = x0.masked_fill(mask0, 0.0)
        v1 = v0.sum(0)
        return v0, v1

`fuzzer.input_source` lists the forms of an input; a statement is the template of an operator in `fuzzer.ops` with its
holes filled. Parsing undoes printing exactly. A docstring and comments are ignored.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from fuzzer.input_source import expression, read_expression
from fuzzer.ops import BY_NAME, OPS, IllTyped, OpSpec, template_of
from fuzzer.program import Case, FuzzerError, InputSpec, Mode, Node, Program
from fuzzer.retype import Scope
from fuzzer.template import head_of


@lru_cache(maxsize=1)
def _by_head() -> Mapping[str, tuple[OpSpec, ...]]:
    found: dict[str, list[OpSpec]] = {}
    for spec in OPS:
        found.setdefault(template_of(spec.name).head, []).append(spec)
    return {
        head: tuple(sorted(specs, key=lambda spec: -len(template_of(spec.name).statements)))
        for head, specs in found.items()
    }


def print_statement(node: Node) -> str:
    """One statement, of one or several lines, without indentation."""
    spec = BY_NAME[node.op]
    names = {slot.name: name for slot, name in zip(spec.slots, node.args, strict=True)}
    return template_of(node.op).fill(node.name, names, dict(node.params))


def _tuple_text(names: Sequence[str], alone: str) -> str:
    return ", ".join(names) if len(names) != 1 else names[0] + alone


def print_program(program: Program) -> str:
    """The text of a module that defines `inputs()` and `program(...)`; nodes must name operators of `fuzzer.ops`."""
    lines = ["import torch", "", "", "def inputs():"]
    made = [f"    {spec.name} = {expression(spec)}" for spec in program.inputs]
    if any("seeded(" in line for line in made):
        lines.append("    seeded = torch.Generator().manual_seed")
    names = [spec.name for spec in program.inputs]
    lines += [*made, f"    return {_tuple_text(names, ',') if names else '()'}", "", ""]
    lines.append(f"def program({', '.join(names)}):")
    for node in program.nodes:
        lines += ["    " + line for line in print_statement(node).split("\n")]
    lines.append(f"    return {_tuple_text(program.outputs, '')}")
    return "\n".join(lines) + "\n"


def case_of(program: Program) -> Case:
    """What a target runs."""
    return Case(source=print_program(program), mode=program.mode)


def _function(module: ast.Module, name: str) -> ast.FunctionDef:
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    raise FuzzerError(f"the file defines no function {name}(); write `def inputs():` and `def program(...):`")


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return list(body[1:])
    return list(body)


def _returned(function: ast.FunctionDef, statement: ast.stmt) -> tuple[str, ...]:
    if isinstance(statement, ast.Return) and statement.value is not None:
        value = statement.value
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        names = tuple(item.id for item in items if isinstance(item, ast.Name))
        if len(names) == len(items):
            return names
    raise FuzzerError(
        f"line {statement.lineno}: {ast.unparse(statement)}: {function.name}() ends with a return of names; "
        "give each result a name first"
    )


def _read_inputs(function: ast.FunctionDef) -> tuple[InputSpec, ...]:
    body = _without_docstring(function.body)
    specs: dict[str, InputSpec] = {}
    for statement in body[:-1]:
        match statement:
            case ast.Assign(targets=[ast.Name(id="seeded")]):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                specs[name] = read_expression(name, value)
            case _:
                raise FuzzerError(
                    f"line {statement.lineno}: {ast.unparse(statement)}: inputs() makes each input in one assignment"
                )
    names = _returned(function, body[-1])
    for name in names:
        if name not in specs:
            raise FuzzerError(f"line {body[-1].lineno}: inputs() returns {name}, which it does not make")
    return tuple(specs[name] for name in names)


def _read_node(scope: Scope, body: list[ast.stmt], where: int) -> tuple[Node, int]:
    """The statement that starts there, and how many Python statements it takes."""
    reason = "no operator is written like this"
    for spec in _by_head().get(head_of(body[where]), ()):
        template = template_of(spec.name)
        match = template.match(body, where)
        if match is None:
            continue
        args = tuple(match.names[slot.name] for slot in spec.slots)
        params = tuple((name, match.literals[name]) for name in template.params)
        try:
            return scope.add_node(match.names["out"], spec.name, args, params), len(template.statements)
        except IllTyped as problem:
            reason = f"{spec.name}: {problem}"
    raise FuzzerError(
        f"line {body[where].lineno}: {ast.unparse(body[where])}: {reason}; "
        "write one call of an operator of fuzzer/ops on names and literals in each statement"
    )


def parse_program(source: str, mode: Mode) -> Program:
    """The Program that a text describes; raises FuzzerError with the line, the text and the remedy."""
    try:
        module = ast.parse(source)
    except SyntaxError as problem:
        raise FuzzerError(f"line {problem.lineno}: {problem.msg}: the file is not Python") from problem
    specs = _read_inputs(_function(module, "inputs"))
    function = _function(module, "program")
    params = tuple(argument.arg for argument in function.args.args)
    if params != tuple(spec.name for spec in specs):
        raise FuzzerError(
            f"line {function.lineno}: program{params} does not take what inputs() returns, "
            f"{tuple(spec.name for spec in specs)}; use the same names in the same order"
        )
    scope = Scope()
    inputs = tuple(scope.add_input(spec) for spec in specs)
    body = _without_docstring(function.body)
    nodes: list[Node] = []
    where = 0
    while where < len(body) - 1:
        node, taken = _read_node(scope, body, where)
        nodes.append(node)
        where += taken
    outputs = _returned(function, body[-1])
    for name in outputs:
        if name not in scope.types:
            raise FuzzerError(f"line {body[-1].lineno}: program() returns {name}, which is not defined")
    return Program(inputs=inputs, nodes=tuple(nodes), outputs=outputs, mode=mode)
