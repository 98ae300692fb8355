"""Text with holes, in both directions: fill the holes to print a statement, or match a statement to find them.

`{x}` stands for a name or a literal; `{*dims}`, among the arguments of a call, for the elements of a tuple;
`{out}` for the name that whole statements define. Matching compares syntax trees, so spacing does not matter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf, isnan
from typing import TypeAlias

from fuzzer.program import DType, Literal

_HOLE = re.compile(r"\{(\*?)([a-zA-Z]\w*)\}")
_MARK = "HOLE_"
_NOT_COMPARED = frozenset({"ctx", "kind", "type_comment"})


def literal_text(value: Literal) -> str:
    """Python text of a literal; floats that have no literal become calls of `float`."""
    if isinstance(value, float) and (isinf(value) or isnan(value)):
        return f'float("{value}")'
    if isinstance(value, tuple):
        inside = ", ".join(literal_text(item) for item in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


class _NotLiteral(Exception):
    pass


def _evaluate(node: ast.expr) -> Literal:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _evaluate(operand)
            if isinstance(inner, int | float) and not isinstance(inner, bool):
                return -inner
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_evaluate(item) for item in items)
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)], keywords=[]):
            return float(text)
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in set(DType):
            return name
    raise _NotLiteral


def literal_value(node: ast.expr) -> Literal | None:
    """The literal that an expression spells out (`torch.float16` is "float16"), or None."""
    try:
        return _evaluate(node)
    except _NotLiteral:
        return None


@dataclass(frozen=True, slots=True)
class Match:
    """What the holes stood for."""

    names: Mapping[str, str]
    """Holes filled by a variable's name, `out` among them."""
    literals: Mapping[str, Literal]
    nested: Mapping[str, ast.expr]
    """Expressions that stood where a name belongs, by the new name that each was given."""


Fresh: TypeAlias = Callable[[], str]
"""Gives a name that is not in use."""


class _Bindings:
    """What the holes stand for, while a statement is being matched."""

    def __init__(self, fresh: Fresh | None) -> None:
        self.names: dict[str, str] = {}
        self.literals: dict[str, Literal] = {}
        self.nested: dict[str, ast.expr] = {}
        self._fresh = fresh

    def name_of(self, node: object) -> str | None:
        """The variable that an expression is, or will be once it has a name; None where it may not be nested."""
        if isinstance(node, ast.Name):
            return node.id
        if self._fresh is None or not isinstance(node, ast.expr) or literal_value(node) is not None:
            return None
        if isinstance(node, ast.Slice | ast.Tuple | ast.Starred):
            return None
        for name, other in self.nested.items():
            if ast.dump(other) == ast.dump(node):
                return name
        name = self._fresh()
        self.nested[name] = node
        return name


class Template:
    """A compiled template. `names` are the holes that only variables fill, `out` aside."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text = text
        self.holes = tuple(dict.fromkeys(name for _, name in _HOLE.findall(text)))
        self.params = tuple(name for name in self.holes if name not in names and name != "out")
        self._names = frozenset((*names, "out"))
        whole = text if "out" in self.holes else "{out} = " + text
        self.statements: tuple[ast.stmt, ...] = tuple(
            ast.parse(_HOLE.sub(lambda hole: hole[1] + _MARK + hole[2], whole)).body
        )

    def fill(self, out: str, names: Mapping[str, str], literals: Mapping[str, Literal]) -> str:
        """The statement that defines `out`, one or several lines without indentation."""

        def text_of(hole: re.Match[str]) -> str:
            star, name = hole[1], hole[2]
            if name == "out":
                return out
            if name in names:
                return names[name]
            value = literals[name]
            if name == "dtype":
                return f"torch.{value}"
            if star:
                items = value if isinstance(value, tuple) else (value,)
                return ", ".join(literal_text(item) for item in items)
            return literal_text(value)

        whole = self.text if "out" in self.holes else "{out} = " + self.text
        return _HOLE.sub(text_of, whole)

    def match(self, statements: Sequence[ast.stmt], start: int, fresh: Fresh | None = None) -> Match | None:
        """What the holes stand for in the statements from `start` on, or None where they differ.

        With `fresh`, an expression may stand where a variable belongs: it is given a name, to be defined before.
        """
        found = statements[start : start + len(self.statements)]
        bound = _Bindings(fresh)
        if len(found) != len(self.statements):
            return None
        for pattern, node in zip(self.statements, found, strict=True):
            if not self._unify(pattern, node, bound):
                return None
        return Match(bound.names, bound.literals, bound.nested)

    def _unify(self, pattern: object, node: object, bound: _Bindings) -> bool:
        if isinstance(pattern, ast.Name) and pattern.id.startswith(_MARK):
            return self._bind(pattern.id[len(_MARK) :], node, bound)
        if type(pattern) is not type(node):
            return False
        if isinstance(pattern, ast.AST):
            return all(
                self._unify(getattr(pattern, field), getattr(node, field), bound)
                for field in pattern._fields
                if field not in _NOT_COMPARED
            )
        if isinstance(pattern, list) and isinstance(node, list):
            return self._unify_lists(pattern, node, bound)
        return bool(pattern == node)

    def _unify_lists(self, pattern: list[object], node: list[object], bound: _Bindings) -> bool:
        last = pattern[-1] if pattern else None
        if isinstance(last, ast.Starred) and isinstance(last.value, ast.Name) and last.value.id.startswith(_MARK):
            rest = [item for item in node[len(pattern) - 1 :] if isinstance(item, ast.expr)]
            if len(node) < len(pattern):
                return False
            one_tuple = len(rest) == 1 and isinstance(rest[0], ast.Tuple | ast.List)
            spread = rest[0] if one_tuple else ast.Tuple(elts=rest, ctx=ast.Load())
            if not self._bind(last.value.id[len(_MARK) :], spread, bound):
                return False
            pattern, node = pattern[:-1], node[: len(pattern) - 1]
        if len(pattern) != len(node):
            return False
        return all(self._unify(one, other, bound) for one, other in zip(pattern, node, strict=True))

    def _bind(self, hole: str, node: object, bound: _Bindings) -> bool:
        if hole in self._names:
            name = bound.name_of(node)
            return name is not None and bound.names.setdefault(hole, name) == name
        if not isinstance(node, ast.expr):
            return False
        value = literal_value(node)
        if value is None:
            return False
        before = bound.literals.setdefault(hole, value)
        return type(before) is type(value) and before == value

    @property
    def head(self) -> str:
        """A key that any matching statement shares: for finding the few templates worth a try."""
        return head_of(self.statements[0])


def head_of(statement: ast.stmt) -> str:
    """The kind of a statement and of the outermost operation in it."""
    if not isinstance(statement, ast.Assign):
        return type(statement).__name__
    if not isinstance(statement.targets[0], ast.Name):
        return f"Assign {type(statement.targets[0]).__name__}"
    value: ast.expr = statement.value
    match value:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.Compare(ops=[op]):
            return type(op).__name__
        case ast.Attribute(attr=name):
            return f".{name}"
    return type(value).__name__
