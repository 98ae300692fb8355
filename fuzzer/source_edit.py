"""Exact, line-preserving edits of Python text: find a fragment by its syntax tree, replace it in the text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import decode_source

from fuzzer.program import FuzzerError

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """An expression (one dump), or statements that follow one another (a dump each)."""

    text: str
    dumps: tuple[str, ...]
    is_expression: bool
    is_simple: bool = True
    """No compound statement among them: they may share a line."""

    @property
    def is_empty(self) -> bool:
        return not self.dumps

    def is_within(self, other: Fragment) -> bool:
        """Whether a match of the other may hold a match of this one."""
        return all(any(dump in whole for whole in other.dumps) for dump in self.dumps)


def fragments(first: str, second: str) -> tuple[Fragment, Fragment]:
    """Parse two forms of one place: two expressions if both can be that, statements otherwise.

    Raises SyntaxError.
    """
    if first.strip() and second.strip():
        try:
            return _expression(first), _expression(second)
        except SyntaxError:
            pass  # not both are expressions, so both are statements
    return _statements(first), _statements(second)


def _expression(text: str) -> Fragment:
    body = ast.parse(text.strip(), mode="eval").body
    return Fragment(text=ast.unparse(body), dumps=(ast.dump(body),), is_expression=True)


def _statements(text: str) -> Fragment:
    body = ast.parse(text).body
    simple = not any(hasattr(statement, "body") for statement in body)
    joined = ("; " if simple else "\n").join(ast.unparse(statement) for statement in body)
    return Fragment(text=joined, dumps=tuple(map(ast.dump, body)), is_expression=False, is_simple=simple)


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int


class Source:
    """Python text, parsed. Positions are bytes of its UTF-8 form."""

    def __init__(self, source: bytes) -> None:
        self.data = decode_source(source).encode()
        self.tree = ast.parse(self.data)
        self._lines = [0]
        for line in self.data.split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def count(self, function: str, fragment: Fragment) -> int:
        """How often the fragment stands in the own code of the function (or class; empty: the module)."""
        return len(self._find(function, fragment))

    def lines(self, function: str, fragment: Fragment) -> tuple[int, ...]:
        """The lines that its matches begin on, from 1."""
        return tuple(self.data.count(b"\n", 0, span.start) + 1 for span in self._find(function, fragment))

    def replace(self, function: str, old: Fragment, new: Fragment) -> bytes:
        """The text with every match replaced and every later line where it was.

        Raises FuzzerError if the new form needs more lines than the old one, or did not come out as meant.
        """
        data = self.data
        spans = self._find(function, old)
        for span in sorted(spans, key=lambda span: -span.start):
            data = data[: span.start] + self._rendered(span, new) + data[span.end :]
        if not new.is_empty and Source(data).count(function, new) < len(spans):
            raise FuzzerError(f"cannot write {new.text!r} in place of {old.text!r} in {function or 'the module'}")
        return data

    def _rendered(self, span: _Span, new: Fragment) -> bytes:
        room = self.data[span.start : span.end].count(b"\n")
        if new.is_expression:
            return b"(" + new.text.encode() + b"\n" * room + b")"  # inside parentheses a new line means nothing
        start_of_line = self.data.rfind(b"\n", 0, span.start) + 1
        indent = self.data[start_of_line : span.start]
        text = (new.text or "pass").encode().replace(b"\n", b"\n" + indent)
        if text.count(b"\n") > room:
            raise FuzzerError(f"{new.text!r} needs more lines than what it replaces: later lines would move")
        return text + b"\n" * (room - text.count(b"\n"))

    def _find(self, function: str, fragment: Fragment) -> list[_Span]:
        spans = []
        for scope in _scopes(self.tree, function):
            for node in _own(scope):
                if fragment.is_expression:
                    if isinstance(node, ast.expr) and ast.dump(node) == fragment.dumps[0]:
                        spans.append(self._span(node, node))
                    continue
                for block in _blocks(node):
                    dumps = [ast.dump(statement) for statement in block] if fragment.dumps else []
                    width = len(fragment.dumps)
                    for start in range(len(dumps) - width + 1):
                        if tuple(dumps[start : start + width]) == fragment.dumps:
                            spans.append(self._span(block[start], block[start + width - 1]))
        return spans

    def _span(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt) -> _Span:
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        start = self._lines[first.lineno - 1] + first.col_offset
        decorators = getattr(first, "decorator_list", [])
        if decorators:
            start = self.data.rindex(b"@", 0, self._lines[decorators[0].lineno - 1] + decorators[0].col_offset)
        return _Span(start, self._lines[last.end_lineno - 1] + last.end_col_offset)


def with_calls(text: bytes, calls: Mapping[int, Sequence[str]]) -> ast.Module:
    """The syntax tree of a text that calls these functions, of no arguments, just before what stands on these lines.

    Every node keeps its line, so tracebacks and debuggers see the text as it is.
    """
    tree = ast.parse(text)
    for line, names in calls.items():
        block, position = _innermost(tree, line)
        where = block[position]
        added = [ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], [])) for name in names]
        for call in added:
            ast.copy_location(call, where)
        block[position:position] = [ast.fix_missing_locations(call) for call in added]
    return tree


def _innermost(tree: ast.Module, line: int) -> tuple[list[ast.stmt], int]:
    """The innermost statement that holds a line: the block it stands in, and its place there."""
    found: tuple[list[ast.stmt], int] | None = None
    for node in ast.walk(tree):  # outer nodes first
        for block in _blocks(node):
            for position, statement in enumerate(block):
                decorators = getattr(statement, "decorator_list", [])
                first = min([statement.lineno, *(one.lineno for one in decorators)])
                if first <= line <= (statement.end_lineno or first):
                    found = block, position
                    break
    assert found is not None, f"no statement on line {line}"
    return found


def is_compiled_by_triton(source: Source, function: str) -> bool:
    """Whether a function is Triton's: it is read as text and never runs as Python."""
    return any(
        "jit" in ast.unparse(decorator)
        for scope in _scopes(source.tree, function)
        for decorator in getattr(scope, "decorator_list", [])
    )


def _scopes(tree: ast.Module, function: str) -> Iterator[ast.AST]:
    """Every definition of that qualified name; there are several when they stand in branches."""
    if not function:
        yield tree
        return
    found: list[ast.AST] = [tree]
    for name in function.split("."):
        found = [
            node
            for scope in found
            for node in _own(scope)
            if isinstance(node, _SCOPES) and node.name == name and node is not scope
        ]
    yield from found


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope; of the functions and classes in it only the definition itself."""
    yield scope
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending.extend(ast.iter_child_nodes(node))


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
