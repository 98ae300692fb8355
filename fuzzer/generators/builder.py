"""A program while it grows: live values, what is known of them, and how one more statement is added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fuzzer.generators.draw import Choices
from fuzzer.generators.inputs import draw_dtype, draw_input, draw_shape
from fuzzer.generators.magnitude import input_size, node_size
from fuzzer.generators.policy import Policy, SizeClass
from fuzzer.ops import BY_NAME, IllTyped, OpSpec, Params, Source, Trait
from fuzzer.ops.rules import limit, tensor
from fuzzer.ops.spec import Slot, Wanted
from fuzzer.program import DType, InputSpec, Literal, Node, Program, Regime, ScalarType, TensorType, Type
from fuzzer.retype import Scope, without_dead

_MAX_INPUTS = 7
_SAVES_NO_RESULT = {
    "add", "sub", "mul", "add_number", "sub_number", "number_minus", "mul_number", "neg", "clone", "clone_contiguous",
    "where", "masked_fill", "index_0", "cat", "sum", "square", "masked_fill_", "add_", "add_number_", "mul_number_",
}  # fmt: skip
"""Operators whose results may be overwritten in training: their backward does not read them."""


class Builder:
    """Grows one program. Methods that add a statement return its name, or None where it does not fit."""

    def __init__(self, draw: Choices, policy: Policy) -> None:
        self.draw = draw
        self.policy = policy
        self.scope = Scope()
        self.inputs: list[InputSpec] = []
        self.nodes: list[Node] = []
        self.kept: list[str] = []
        """Values that an idiom wants among the outputs."""
        self._size: dict[str, float] = {}
        self._uses: dict[str, int] = {}
        self._differentiable: set[str] = set()
        self.main_shape = draw_shape(draw, policy.sizes)

    def type_of(self, name: str) -> TensorType:
        """The type of a live tensor; raises IllTyped for a Python number."""
        return tensor(self.scope.types[name])

    def add_input(self, wanted: TensorType, regime: Regime | None = None) -> str | None:
        """A new input, with the policy's regime and layout; None when there are enough."""
        if len(self.inputs) >= _MAX_INPUTS or wanted.numel > self.policy.largest:
            return None
        prefix = "mask" if wanted.dtype is DType.BOOL else "ids" if wanted.high is not None else "x"
        if regime is Regime.LENGTHS:
            prefix = "lengths"
        number = sum(spec.name.rstrip("0123456789") == prefix for spec in self.inputs)
        drawn = draw_input(self.draw, self.policy, f"{prefix}{number}", wanted, regime)
        try:
            spec = self.scope.add_input(drawn)
        except IllTyped:
            return None
        self.inputs.append(spec)
        self._size[spec.name] = input_size(spec)
        self._uses[spec.name] = 0
        if spec.type.dtype.is_floating:
            self._differentiable.add(spec.name)
        return spec.name

    def add_main_input(self, dtype: DType | None = None) -> str | None:
        """A new input of the program's main shape, or now and then of another."""
        shape = self.main_shape
        if self.draw.chance(20):
            shape = draw_shape(self.draw, self.policy.sizes)
        return self.add_input(TensorType(shape=shape, dtype=dtype or draw_dtype(self.draw, self.policy)))

    def emit(self, op: str, *args: str, **params: Literal) -> str | None:
        """Add a statement if it is well-typed, small, finite, and allowed in this mode."""
        return self.emit_with(BY_NAME[op], args, Params(tuple(params.items())))

    def emit_with(self, spec: OpSpec, args: Sequence[str], params: Params) -> str | None:
        """Like `emit`, with the parameters as a record."""
        if self.policy.mode.training and not self._trainable(spec, args):
            return None
        try:
            found = self.scope.infer(spec.name, args, params.pairs)
        except IllTyped:
            return None
        size = node_size(spec, [self._size[name] for name in args], [self.scope.types[name] for name in args], params)
        if not self._suits(found, size):
            return None
        node = self.scope.add_node(f"v{len(self.nodes)}", spec.name, args, params.pairs)
        self.nodes.append(node)
        self._size[node.name] = size
        self._uses[node.name] = 0
        for name in args:
            self._uses[name] += 1
        if Trait.MUTATES in spec.traits:
            for name in self.scope.storage[args[0]].roots & self._size.keys():
                self._size[name] = max(self._size[name], size)
        smooth = found.dtype.is_floating and isinstance(found, TensorType) and Trait.CONSTANT not in spec.traits
        if smooth and any(name in self._differentiable for name in args):
            self._differentiable.add(node.name)
        return node.name

    def _suits(self, found: Type, size: float) -> bool:
        if isinstance(found, ScalarType):
            return size < 1e15
        if found.numel > self.policy.largest:
            return False
        largest = {DType.FLOAT16: 3e4, DType.INT32: 2e9, DType.INT64: 4e15, DType.BFLOAT16: 1e15}
        return size <= largest.get(found.dtype, min(limit(found.dtype), 1e18))

    def _trainable(self, spec: OpSpec, args: Sequence[str]) -> bool:
        if Trait.SINGULAR in spec.traits:
            return False
        if Trait.MUTATES not in spec.traits:
            return True
        target = args[0]
        made = next((node for node in self.nodes if node.name == target), None)
        return (
            made is not None
            and made.op in _SAVES_NO_RESULT
            and self._uses[target] == 0
            and (target in self._differentiable or not any(name in self._differentiable for name in args))
        )

    def pick(self, accepts: Callable[[Type], bool], source: Source = Source.ANYWHERE) -> str | None:
        """A live value, late ones and unused ones more often."""
        if source is Source.ANYWHERE:
            fitting = [name for name, found in self.scope.types.items() if accepts(found)]
        else:
            regimes = (Regime.LENGTHS,) if source is Source.LENGTHS else (Regime.UNIQUE,)
            fitting = [spec.name for spec in self.inputs if spec.regime in regimes and accepts(spec.type)]
        if not fitting:
            return None
        fitting.reverse()
        if self.draw.chance(self.policy.late):
            return self.draw.choice(fitting[:3])
        unused = [name for name in fitting if not self._uses[name]]
        return self.draw.choice(unused if unused and self.draw.chance(50) else fitting)

    def pick_tensor(self, accepts: Callable[[TensorType], bool]) -> str | None:
        """A live tensor whose type is accepted."""
        return self.pick(lambda found: isinstance(found, TensorType) and accepts(found))

    def apply(self, spec: OpSpec, first: str | None = None) -> str | None:
        """Add a statement of this operator: choose or make its arguments, draw its parameters."""
        if Trait.MUTATES in spec.traits and not self.draw.chance(self.policy.in_place):
            return None
        slot = spec.slots[0]
        if first is None:
            first = self.pick(lambda found: slot.fits(found, (), Params()), slot.source)
        if first is None:
            return None
        params = spec.draw(self.draw, self.scope.types[first])
        if params is None:
            return None
        args = [first]
        try:
            for other in spec.slots[1:]:
                name = self._argument(other, args, params)
                if name is None:
                    return None
                args.append(name)
        except IllTyped:
            return None
        return self.emit_with(spec, args, params)

    def _argument(self, slot: Slot, args: Sequence[str], params: Params) -> str | None:
        seen = tuple(self.scope.types[name] for name in args)
        if not self.draw.chance(self.policy.fresh):
            found = self.pick(lambda candidate: slot.fits(candidate, seen, params), slot.source)
            if found is not None:
                return found
        wanted = slot.fresh(self.draw, seen, params)
        made = None if wanted is None else self.make(wanted)
        return made or self.pick(lambda candidate: slot.fits(candidate, seen, params), slot.source)

    def make(self, wanted: Wanted) -> str | None:
        """A new input that an argument asks for; a mask is computed from a live value now and then."""
        if wanted.type.dtype is DType.BOOL and self.draw.chance(35):
            like = self.pick_tensor(lambda found: found.shape == wanted.type.shape and found.dtype is not DType.BOOL)
            if like is not None:
                return self.apply(BY_NAME["gt_number"], like)
        return self.add_input(wanted.type, wanted.regime)

    def finish(self) -> Program | None:
        """The program, without what no output depends on; None when it has no statement."""
        if not self.nodes:
            return None
        sinks = [node.name for node in reversed(self.nodes) if not self._uses[node.name]]
        kept = [name for name in dict.fromkeys(self.kept) if name in self.scope.types]
        chosen = list(dict.fromkeys((*kept[-self.policy.outputs :], *sinks)))[: self.policy.outputs]
        others = [node.name for node in reversed(self.nodes) if node.name not in chosen]
        while others and len(chosen) < self.policy.outputs and self.draw.chance(70):
            chosen.append(others.pop(self.draw.integer(0, min(len(others), 6) - 1)))
        order = [name for name in self.scope.types if name in chosen]
        mode = self.policy.mode
        if mode.training and not any(name in self._differentiable for name in order):
            mode = replace(mode, training=False)
        whole = Program(inputs=tuple(self.inputs), nodes=tuple(self.nodes), outputs=tuple(order), mode=mode)
        return renumbered(without_dead(whole))

    @property
    def is_long(self) -> bool:
        """Are shapes made for split reductions?"""
        return self.policy.sizes is SizeClass.LONG


def renumbered(program: Program) -> Program:
    """The program with its statements named v0, v1, ... and inputs x0, mask0, ... in order, without gaps."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for old in (*(spec.name for spec in program.inputs), *(node.name for node in program.nodes)):
        prefix = old.rstrip("0123456789")
        names[old] = f"{prefix}{counts.get(prefix, 0)}"
        counts[prefix] = counts.get(prefix, 0) + 1
    return replace(
        program,
        inputs=tuple(replace(spec, name=names[spec.name]) for spec in program.inputs),
        nodes=tuple(
            replace(node, name=names[node.name], args=tuple(names[name] for name in node.args))
            for node in program.nodes
        ),
        outputs=tuple(names[name] for name in program.outputs),
    )
