"""Are these statements a program? Infers every type, and refuses what eager refuses or leaves undefined.

Beyond types there are rules about storage: an in-place write may not touch an expanded tensor, may not read
through another view of what it writes, and may not break the bound of an index; the values that must differ
from one another, or add up, must come from an unmodified input that promises it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fuzzer.input_source import check_input
from fuzzer.ops import BY_NAME, IllTyped, OpSpec, Params, Source, Trait, template_of
from fuzzer.program import InputSpec, LayoutKind, Literal, Mode, Node, Program, Regime, Type


@dataclass(frozen=True, slots=True)
class Storage:
    """What is known of the memory behind a value."""

    roots: frozenset[str]
    """Names of the values whose memory it may share; itself if it is fresh."""
    overlaps: bool = False


class Scope:
    """The names defined so far, their types and storage. Grows by one input or statement at a time."""

    def __init__(self) -> None:
        self.types: dict[str, Type] = {}
        self.storage: dict[str, Storage] = {}
        self.inputs: dict[str, InputSpec] = {}
        self.mutated: set[str] = set()

    def copy(self) -> Scope:
        """A scope that grows on its own from here."""
        other = Scope()
        other.types, other.storage = dict(self.types), dict(self.storage)
        other.inputs, other.mutated = dict(self.inputs), set(self.mutated)
        return other

    def add_input(self, spec: InputSpec) -> InputSpec:
        """Define an input; raises IllTyped when its regime or layout does not suit its type."""
        if spec.name in self.types:
            raise IllTyped(f"{spec.name} is defined twice")
        spec = check_input(spec)
        self.inputs[spec.name] = spec
        self.types[spec.name] = spec.type
        self.storage[spec.name] = Storage(frozenset((spec.name,)), spec.layout.kind is LayoutKind.EXPANDED)
        return spec

    def infer(self, op: str, args: Sequence[str], params: Sequence[tuple[str, Literal]]) -> Type:
        """The type of a statement that could come next; raises IllTyped where there is none."""
        spec = BY_NAME.get(op)
        if spec is None:
            raise IllTyped(f"no operator {op}")
        if len(args) != len(spec.slots):
            raise IllTyped(f"{op} takes {len(spec.slots)} arguments")
        for name in args:
            if name not in self.types:
                raise IllTyped(f"{name} is not defined")
        self._check_sources(spec, args)
        if Trait.MUTATES in spec.traits:
            self._check_write(args)
        return spec.infer(tuple(self.types[name] for name in args), Params(tuple(params)))

    def add_node(self, name: str, op: str, args: Sequence[str], params: Sequence[tuple[str, Literal]]) -> Node:
        """Define a name by a statement; raises IllTyped where eager would refuse it or it would be undefined."""
        if name in self.types:
            raise IllTyped(f"{name} is defined twice")
        found = self.infer(op, args, params)
        given = dict(params)
        wanted = template_of(op).params
        if set(given) != set(wanted):
            raise IllTyped(f"{op} has the parameters {', '.join(wanted)}")
        self.types[name] = found
        self.storage[name] = self._storage_of(name, BY_NAME[op], args)
        if Trait.MUTATES in BY_NAME[op].traits:
            self.mutated |= self.storage[args[0]].roots
        ordered = tuple((key, given[key]) for key in wanted)
        return Node(name=name, op=op, args=tuple(args), params=ordered, type=found)

    def _check_sources(self, spec: OpSpec, args: Sequence[str]) -> None:
        for slot, name in zip(spec.slots, args, strict=True):
            if slot.source is Source.ANYWHERE:
                continue
            source = self.inputs.get(name)
            if source is None or name in self.mutated:
                raise IllTyped(f"{name} must be an unmodified input")
            if slot.source is Source.LENGTHS and source.regime is not Regime.LENGTHS:
                raise IllTyped(f"{name} must be of regime lengths")
            if slot.source is Source.UNIQUE and source.regime not in (Regime.UNIQUE, Regime.IOTA):
                raise IllTyped(f"{name} must hold different values")

    def _check_write(self, args: Sequence[str]) -> None:
        target = self.storage[args[0]]
        if target.overlaps or len(target.roots) != 1:
            raise IllTyped(f"{args[0]} may share memory with itself or with one of several values")
        for name in args[1:]:
            if self.storage[name].roots & target.roots:
                raise IllTyped(f"{name} is read through the memory that is written")

    def _storage_of(self, name: str, spec: OpSpec, args: Sequence[str]) -> Storage:
        sources = []
        if spec.traits & {Trait.ALIASES, Trait.MUTATES}:
            sources.append(self.storage[args[0]])
        if Trait.ALIASES_SECOND in spec.traits:
            sources.append(self.storage[args[1]])
        if not sources:
            return Storage(frozenset((name,)))
        roots = frozenset(root for source in sources for root in source.roots)
        return Storage(roots, any(source.overlaps for source in sources) or Trait.OVERLAPS in spec.traits)


def checked(inputs: Iterable[InputSpec], nodes: Iterable[Node], outputs: Sequence[str], mode: Mode) -> Program:
    """The program that these statements make, with every type inferred anew; raises IllTyped where there is none."""
    scope = Scope()
    specs = tuple(scope.add_input(spec) for spec in inputs)
    found = tuple(scope.add_node(node.name, node.op, node.args, node.params) for node in nodes)
    if not outputs:
        raise IllTyped("a program returns at least one value")
    for name in outputs:
        if name not in scope.types:
            raise IllTyped(f"output {name} is not defined")
    return Program(inputs=specs, nodes=found, outputs=tuple(outputs), mode=mode)


def retype(inputs: Iterable[InputSpec], nodes: Iterable[Node], outputs: Sequence[str], mode: Mode) -> Program | None:
    """Like `checked`, for edits that may not make sense: None when they do not. Types in `nodes` are not read."""
    try:
        return checked(inputs, nodes, outputs, mode)
    except IllTyped:
        return None


def without_dead(program: Program) -> Program:
    """The program without the statements and inputs that no output depends on, in-place writes included.

    An in-place write to memory that a live value shares is live.
    """
    scope = Scope()
    for spec in program.inputs:
        scope.add_input(spec)
    for node in program.nodes:
        scope.add_node(node.name, node.op, node.args, node.params)
    live = set(program.outputs)
    touched = {root for name in live for root in scope.storage[name].roots}
    kept: list[Node] = []
    for node in reversed(program.nodes):
        roots = scope.storage[node.name].roots
        writes = Trait.MUTATES in BY_NAME[node.op].traits and bool(roots & touched)
        if node.name in live or writes:
            kept.append(node)
            live.update(node.args)
            live.add(node.name)
            touched.update(root for name in (*node.args, node.name) for root in scope.storage[name].roots)
    inputs = tuple(spec for spec in program.inputs if spec.name in live)
    return replace(program, inputs=inputs or program.inputs[:1], nodes=tuple(reversed(kept)))
