"""Passes over the graph: fewer outputs, fewer statements, fewer inputs.

Statements go in chunks, big ones first (ddmin: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002), and three ways of closing the gap: cut the graph with new inputs, lead the chunk's operands past it,
or return what it consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from fuzzer.minimize.draft import Draft, draft, fresh_input, rename
from fuzzer.program import InputSpec, Node, Program, Regime, ScalarType, TensorType, Type

Edit = Callable[[Program], Iterator[Draft]]


def drop_dead(program: Program) -> Iterator[Draft]:
    """The program as it stands: settling it leaves out what no output needs."""
    yield draft(program)


def keep_one_output(program: Program) -> Iterator[Draft]:
    """Return one value only."""
    if len(program.outputs) > 1:
        for name in dict.fromkeys(program.outputs):
            yield draft(program, outputs=(name,))


def drop_one_output(program: Program) -> Iterator[Draft]:
    """Return all values but one."""
    if len(program.outputs) > 2:
        for position in range(len(program.outputs)):
            yield draft(program, outputs=program.outputs[:position] + program.outputs[position + 1 :])


def move_outputs(program: Program) -> Iterator[Draft]:
    """Return another value in place of one that is returned, so that what only that one needed goes."""
    made = [node.name for node in program.nodes if node.name not in program.outputs]
    for position in range(len(program.outputs) - 1, -1, -1):
        for name in made:
            yield draft(program, outputs=(*program.outputs[:position], name, *program.outputs[position + 1 :]))


def drop_chunks(length: int) -> Edit:
    """The edit that drops `length` statements in a row, at every multiple of `length` from either end."""

    def edit(program: Program) -> Iterator[Draft]:
        count = len(program.nodes)
        if length >= count and length > 1:
            return
        starts = dict.fromkeys([*range(0, max(count - length, 0) + 1, length), count - length]) if count else ()
        for start in starts:
            chunk = program.nodes[start : start + length]
            yield from _without(program, chunk)

    return edit


def cut_cones(program: Program) -> Iterator[Draft]:
    """Make one intermediate value an input, so that all that only it needed goes; the deepest gain first."""
    cones = {node.name: _cone(program, node.name) for node in program.nodes if isinstance(node.type, TensorType)}
    for name in sorted(cones, key=lambda name: -len(cones[name])):
        if len(cones[name]) > 1:
            yield from _cut(program, tuple(node for node in program.nodes if node.name == name))


def disconnect(program: Program) -> Iterator[Draft]:
    """Make one intermediate value an input, but return what it was made of: for two parts that need each other."""
    made = {node.name for node in program.nodes}
    for node in reversed(program.nodes):
        feeders = tuple(name for name in node.args if name in made and name not in program.outputs)
        if feeders:
            for edited in _cut(program, (node,)):
                yield replace(edited, outputs=tuple(dict.fromkeys((*feeders, *edited.outputs))))


def merge_inputs(program: Program) -> Iterator[Draft]:
    """Use one input where two of the same type are used."""
    specs = program.inputs
    for later in range(len(specs) - 1, 0, -1):
        for earlier in range(later):
            if _stands_for(specs[earlier], specs[later]):
                names = {specs[later].name: specs[earlier].name}
                yield _renamed(program, names, specs, program.nodes, program.outputs)


def reuse_operands(program: Program) -> Iterator[Draft]:
    """Let one statement use, for one operand, another of its operands of the same type."""
    types = program.types
    for position in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[position]
        for slot, name in enumerate(node.args):
            for other in node.args:
                if other != name and _same(types[other], types[name]):
                    args = (*node.args[:slot], other, *node.args[slot + 1 :])
                    nodes = _with(program.nodes, position, replace(node, args=args))
                    yield draft(program, nodes=nodes)


def _without(program: Program, chunk: Sequence[Node]) -> Iterator[Draft]:
    yield from _cut(program, chunk)
    yield from _lead_past(program, chunk)


def _cut(program: Program, chunk: Sequence[Node]) -> Iterator[Draft]:
    """Values of `chunk` that are used outside become inputs; an output in `chunk` gives way to its operands.

    A number cannot be an input: the statement that makes one that is used stays, and its operand becomes the input.
    """
    inside = {node.name for node in chunk}
    outside = {name for node in program.nodes if node.name not in inside for name in node.args}
    gone = {node.name for node in chunk if isinstance(node.type, TensorType) or node.name not in outside}
    if not gone:
        return
    rest = tuple(node for node in program.nodes if node.name not in gone)
    needed = {name for node in rest for name in node.args}
    taken = {spec.name for spec in program.inputs} | {node.name for node in program.nodes}
    inputs, names = list(program.inputs), dict[str, str]()
    for node in chunk:
        if node.name in gone & needed and isinstance(node.type, TensorType):
            names[node.name] = _unused(f"cut_{node.name}", taken)
            inputs.append(fresh_input(names[node.name], node.type, seed=len(inputs)))
    outputs = _retreat(program, gone, needed) or tuple(node.name for node in rest[-1:])
    if outputs:
        yield _renamed(program, names, inputs, rest, outputs)


def _lead_past(program: Program, chunk: Sequence[Node]) -> Iterator[Draft]:
    """Each value of `chunk` that is used outside gives way to an operand or, failing that, an input of its type."""
    gone = {node.name: node for node in chunk}
    types = program.types
    names: dict[str, str] = {}
    rest = tuple(node for node in program.nodes if node.name not in gone)
    needed = {name for node in rest for name in node.args} | set(program.outputs)
    for node in chunk:
        if node.name in needed:
            stand_in = _ancestor(node, gone, types) or _input_like(node.type, program.inputs)
            if stand_in is None:
                return
            names[node.name] = stand_in
    yield _renamed(program, names, program.inputs, rest, program.outputs)


def _ancestor(node: Node, gone: Mapping[str, Node], types: Mapping[str, Type]) -> str | None:
    """The nearest value before `node`, outside `gone`, of its type."""
    queue = list(node.args)
    for name in queue:
        if name in gone:
            queue.extend(arg for arg in gone[name].args if arg not in queue)
        elif _same(types[name], node.type):
            return name
    return None


def _input_like(kind: Type, inputs: Sequence[InputSpec]) -> str | None:
    return next((spec.name for spec in inputs if _same(spec.type, kind)), None)


def _retreat(program: Program, gone: set[str], needed: set[str]) -> tuple[str, ...]:
    """The outputs outside `gone`, and in place of each one inside the values it was made of and no one else uses."""
    nodes = {node.name: node for node in program.nodes}
    outputs: dict[str, None] = {}
    for name in program.outputs:
        queue = [name]
        for value in queue:
            if value in gone:
                queue.extend(arg for arg in nodes[value].args if arg in nodes and arg not in queue)
            elif value == name or value not in needed:
                outputs[value] = None
    return tuple(outputs)


def _cone(program: Program, name: str) -> set[str]:
    """The statements that only `name` needs, itself included."""
    wanted = set(program.outputs) - {name}
    gone = {name}
    for node in reversed(program.nodes):
        if node.name == name:
            continue
        if node.name in wanted:
            wanted.update(node.args)
        else:
            gone.add(node.name)
    return gone


def _stands_for(spec: InputSpec, other: InputSpec) -> bool:
    """Whether `spec` may be used where `other` is: same type, and distinct or summing values where those matter."""
    strict = (Regime.UNIQUE, Regime.LENGTHS)
    regimes_fit = spec.regime == other.regime or (spec.regime not in strict and other.regime not in strict)
    return regimes_fit and _same(spec.type, other.type)


def _same(one: Type, other: Type) -> bool:
    """Whether a value of type `one` can be used where one of type `other` is."""
    match one, other:
        case TensorType(), TensorType():
            return (one.shape, one.dtype) == (other.shape, other.dtype) and _bounded(one.high, other.high)
        case ScalarType(), ScalarType():
            return one.dtype == other.dtype and _bounded(one.high, other.high)
        case _:
            return False


def _bounded(high: int | None, bound: int | None) -> bool:
    return bound is None or (high is not None and high <= bound)


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _with(nodes: tuple[Node, ...], position: int, node: Node) -> tuple[Node, ...]:
    return (*nodes[:position], node, *nodes[position + 1 :])


def _renamed(
    program: Program,
    names: Mapping[str, str],
    inputs: Sequence[InputSpec],
    nodes: Sequence[Node],
    outputs: Sequence[str],
) -> Draft:
    """`program` with these parts, and every use of a key of `names` exchanged for its value."""
    return draft(
        program,
        inputs=tuple(inputs),
        nodes=rename(nodes, names),
        outputs=tuple(dict.fromkeys(names.get(name, name) for name in outputs)),
    )
