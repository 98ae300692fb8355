"""A program being edited: names may dangle, types may be stale; `settle` makes it well-formed again or says no."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fuzzer.ops import BY_NAME, Trait
from fuzzer.program import (
    DType,
    InputSpec,
    Layout,
    LayoutKind,
    Literal,
    Mode,
    Node,
    Program,
    Regime,
    ScalarType,
    TensorType,
)
from fuzzer.retype import retype


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a program, not yet checked."""

    inputs: tuple[InputSpec, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    mode: Mode


def draft(
    program: Program,
    *,
    inputs: tuple[InputSpec, ...] | None = None,
    nodes: tuple[Node, ...] | None = None,
    outputs: tuple[str, ...] | None = None,
    mode: Mode | None = None,
) -> Draft:
    """`program` with some of its parts exchanged."""
    return Draft(
        inputs=program.inputs if inputs is None else inputs,
        nodes=program.nodes if nodes is None else nodes,
        outputs=program.outputs if outputs is None else outputs,
        mode=program.mode if mode is None else mode,
    )


def settle(edited: Draft) -> Iterator[Program]:
    """The well-formed programs that `edited` can mean: dead statements dropped, types inferred, names canonical.

    First without anything that no output needs; then, where that differs, with the statements that act without being
    used: those that write into an argument, and those that take a number out of the graph (a graph break).
    """
    pure = _prune(edited, keep_effects=False)
    for kept in (pure,) if (full := _prune(edited, keep_effects=True)) == pure else (pure, full):
        nodes = tuple(_spelled(node) for node in kept.nodes)
        if kept.outputs and (program := retype(kept.inputs, nodes, kept.outputs, kept.mode)) is not None:
            yield renumber(program)


def _spelled(node: Node) -> Node:
    """`node` with its parameters as its operator spells them: a tuple where several may stand, and no other ones."""
    template = BY_NAME[node.op].template
    params: list[tuple[str, Literal]] = []
    for name, value in node.params:
        if f"{{*{name}}}" in template:
            params.append((name, value if isinstance(value, tuple) else (value,)))
        elif f"{{{name}}}" in template:
            params.append((name, value))
    return replace(node, params=tuple(params))


def acts(node: Node) -> bool:
    """Whether `node` does something even if nobody uses its value."""
    return isinstance(node.type, ScalarType) or Trait.MUTATES in BY_NAME[node.op].traits


def _prune(edited: Draft, *, keep_effects: bool) -> Draft:
    """Drop the statements that reach no output, and the inputs that nothing uses."""
    used = set(edited.outputs)
    nodes: list[Node] = []
    for node in reversed(edited.nodes):
        if node.name in used or (keep_effects and acts(node)):
            used.update(node.args)
            nodes.append(node)
    return Draft(
        inputs=tuple(spec for spec in edited.inputs if spec.name in used),
        nodes=tuple(reversed(nodes)),
        outputs=edited.outputs,
        mode=edited.mode,
    )


def renumber(program: Program) -> Program:
    """The same program with canonical names: `x0`, `mask1`, `index2` for inputs by position, `t0`, `t1` for values."""
    names: dict[str, str] = {}
    for position, spec in enumerate(program.inputs):
        names[spec.name] = f"{_stem(spec)}{position}"
    for position, node in enumerate(program.nodes):
        stem = "v" if isinstance(node.type, ScalarType) else "t"
        names[node.name] = f"{stem}{position}"
    return Program(
        inputs=tuple(replace(spec, name=names[spec.name]) for spec in program.inputs),
        nodes=rename(program.nodes, names),
        outputs=tuple(names[name] for name in program.outputs),
        mode=program.mode,
    )


def rename(nodes: Collection[Node], names: Mapping[str, str]) -> tuple[Node, ...]:
    """`nodes` with each name, defined or used, exchanged as `names` says."""
    return tuple(
        replace(node, name=names.get(node.name, node.name), args=tuple(names.get(name, name) for name in node.args))
        for node in nodes
    )


def fresh_input(name: str, kind: TensorType, seed: int) -> InputSpec:
    """An input that can stand for a value of type `kind`: bounded integers stay within their bound."""
    if not kind.dtype.is_integer:
        regime = Regime.NORMAL
    elif kind.high is not None:
        regime = Regime.INDEX
    else:
        regime = Regime.EXACT
    return InputSpec(name=name, type=kind, regime=regime, seed=seed)


def fitting_layout(layout: Layout, shape: Sequence[int]) -> Layout:
    """The layout for a tensor whose shape has changed: without the dims that have no room for it any more."""
    match layout.kind:
        case LayoutKind.EXPANDED:
            dims = tuple(dim for dim in layout.dims if shape[dim] > 1)
            return replace(layout, dims=dims) if dims else Layout()
        case LayoutKind.PERMUTED:
            return layout if layout.dims != tuple(range(len(shape))) else Layout()
        case LayoutKind.STRIDED:
            return layout if layout.dims and (layout.offset, layout.step) != (0, 1) else Layout()
        case _:
            return layout


def _stem(spec: InputSpec) -> str:
    if spec.regime in (Regime.INDEX, Regime.UNIQUE):
        return "index"
    if spec.regime is Regime.LENGTHS:
        return "lengths"
    return "mask" if spec.type.dtype is DType.BOOL else "x"
