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
holes filled. Parsing undoes printing exactly. It also reads what people write: docstrings and comments are ignored,
`fuzzer.statements` takes nested expressions apart.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fuzzer.input_source import expression, read_expression
from fuzzer.ops import BY_NAME, template_of
from fuzzer.program import Case, FuzzerError, InputSpec, Mode, Node, Program
from fuzzer.statements import StatementReader, in_order


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


def _returned(function: ast.FunctionDef) -> list[ast.expr]:
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        raise FuzzerError(
            f"line {last.lineno}: {ast.unparse(last)}: {function.name}() ends with a return of its results"
        )
    return last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]


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
    names = [item.id if isinstance(item, ast.Name) else "" for item in _returned(function)]
    for name in names:
        if name not in specs:
            raise FuzzerError(
                f"line {body[-1].lineno}: {ast.unparse(body[-1])}: inputs() returns the names that it assigned"
            )
    return tuple(specs[name] for name in names)


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
    reader = StatementReader(specs, {node.id for node in ast.walk(function) if isinstance(node, ast.Name)})
    nodes = reader.read(_without_docstring(function.body)[:-1])
    outputs, more = reader.read_results(_returned(function))
    return in_order(Program(inputs=reader.inputs, nodes=(*nodes, *more), outputs=outputs, mode=mode), reader.made)
