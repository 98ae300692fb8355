"""A program being edited: names may dangle, types may be stale; `settle` makes it well-formed again or says no."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from fuzzer.ops import BY_NAME, Trait
from fuzzer.program import InputSpec, Mode, Node, Program, Regime, ScalarType, TensorType
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
        if kept.outputs and (program := retype(kept.inputs, kept.nodes, kept.outputs, kept.mode)) is not None:
            yield renumber(program)


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
        inputs=tuple(
            InputSpec(name=names[spec.name], type=spec.type, regime=spec.regime, layout=spec.layout, seed=spec.seed)
            for spec in program.inputs
        ),
        nodes=rename(program.nodes, names),
        outputs=tuple(names[name] for name in program.outputs),
        mode=program.mode,
    )


def rename(nodes: Collection[Node], names: Mapping[str, str]) -> tuple[Node, ...]:
    """`nodes` with each name, defined or used, exchanged as `names` says."""
    return tuple(
        Node(
            name=names.get(node.name, node.name),
            op=node.op,
            args=tuple(names.get(name, name) for name in node.args),
            params=node.params,
            type=node.type,
        )
        for node in nodes
    )


def fresh_input(name: str, kind: TensorType) -> InputSpec:
    """An input that can stand for a value of type `kind`: bounded integers stay within their bound."""
    if kind.dtype.is_floating:
        regime = Regime.NORMAL
    elif kind.high is not None:
        regime = Regime.INDEX
    else:
        regime = Regime.EXACT
    return InputSpec(name=name, type=kind, regime=regime)


def _stem(spec: InputSpec) -> str:
    if spec.regime in (Regime.INDEX, Regime.UNIQUE):
        return "index"
    if spec.regime is Regime.LENGTHS:
        return "lengths"
    return "mask" if spec.type.dtype.value == "bool" else "x"
