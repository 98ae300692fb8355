"""Carry a change of input types through a program: parameters follow, types are inferred anew.

No operator is known by name here: what a parameter may become is tried out, and `OpSpec.infer` says what is legal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

from fuzzer.input_source import check_input
from fuzzer.minimize.draft import Draft, draft, fitting_layout
from fuzzer.minimize.products import follow, products
from fuzzer.ops import BY_NAME, IllTyped, Params
from fuzzer.program import InputSpec, Layout, Literal, Node, Program, Regime, TensorType, Type

Pairs: TypeAlias = "tuple[tuple[str, Literal], ...]"
Variants: TypeAlias = Callable[[Node, Sequence[Type]], Iterable[Pairs]]
"""What a statement's parameters may become, given the new types of its operands; the first that fits is taken."""
Fits: TypeAlias = Callable[[Type, Type], bool]
"""Whether the old type of a value may become the new one."""

_MAX_VARIANTS = 64
"""How many parameter sets are tried for one statement."""


def refit(program: Program, inputs: Sequence[InputSpec], variants: Variants, fits: Fits) -> Draft | None:
    """`program` on other inputs (same names), or None where no variant of some statement fits."""
    try:
        inputs = tuple(check_input(spec) for spec in inputs)
    except IllTyped:
        return None
    types: dict[str, Type] = {spec.name: spec.type for spec in inputs}
    nodes: list[Node] = []
    for node in program.nodes:
        operands = tuple(types[name] for name in node.args)
        for pairs in variants(node, operands):
            kind = infer(node.op, operands, pairs)
            if kind is not None and fits(node.type, kind):
                break
        else:
            return None
        types[node.name] = kind
        nodes.append(replace(node, params=pairs, type=kind))
    return draft(program, inputs=inputs, nodes=tuple(nodes))


def infer(op: str, operands: tuple[Type, ...], pairs: Pairs) -> Type | None:
    """The type of a statement's value; None where eager would refuse it."""
    try:
        return BY_NAME[op].infer(operands, Params(pairs))
    except IllTyped:
        return None


def resize(program: Program, value: int, smaller: int) -> Draft | None:
    """Every size `value` becomes `smaller`, and every size that is computed from it follows."""
    sizes = follow({value: smaller}, products(program))
    for _ in range(8):
        if sizes is None:
            return None
        moved: dict[int, int] = {}
        inputs = tuple(_resized(spec, sizes) for spec in program.inputs)

        def fits(old: Type, new: Type, sizes: Mapping[int, int] = sizes, moved: dict[int, int] = moved) -> bool:
            if isinstance(old, TensorType) and isinstance(new, TensorType) and old.rank == new.rank:
                for before, after in zip(old.shape, new.shape, strict=True):
                    if sizes.get(before, before) != after and before not in sizes:
                        moved.setdefault(before, after)
            return True

        def variants(node: Node, operands: Sequence[Type], sizes: Mapping[int, int] = sizes) -> Iterator[Pairs]:
            return _size_variants(program, node, operands, sizes)

        edited = refit(program, inputs, variants, fits)
        if edited is not None:
            return edited
        grown = {before: after for before, after in moved.items() if after < before}
        if not grown:
            return None
        sizes = {**sizes, **grown}
    return None


def resize_dim(program: Program, position: int, dim: int, smaller: int) -> Draft | None:
    """One dim of one input becomes `smaller`; only parameters follow."""
    spec = program.inputs[position]
    shape = (*spec.type.shape[:dim], smaller, *spec.type.shape[dim + 1 :])
    inputs = list(program.inputs)
    layout = fitting_layout(spec.layout, shape)
    inputs[position] = replace(spec, type=replace(spec.type, shape=shape), layout=layout)
    sizes = {spec.type.shape[dim]: smaller}

    def variants(node: Node, operands: Sequence[Type]) -> Iterator[Pairs]:
        yield node.params
        yield from _size_variants(program, node, operands, sizes)

    return refit(program, inputs, variants, lambda old, new: True)


def drop_dim(program: Program, dims: Mapping[str, int]) -> Draft | None:
    """Each input named in `dims` loses that dim; every other value keeps its shape or loses one dim."""
    inputs = [_without_dim(spec, dims[spec.name]) if spec.name in dims else spec for spec in program.inputs]
    old_types = program.types

    def variants(node: Node, operands: Sequence[Type]) -> Iterator[Pairs]:
        olds = [old_types[name] for name in node.args]
        lost = [_lost(old, new) for old, new in zip(olds, operands, strict=True)]
        gone = next((dim for dim in lost if dim is not None), None)
        if gone is None:
            yield node.params
        else:
            first = next(old for old, dim in zip(olds, lost, strict=True) if dim is not None)
            rank = first.rank if isinstance(first, TensorType) else 0
            choices = [tuple(_dim_choices(value, gone, rank)) for _, value in node.params]
            yield from _combined(node, choices)

    def fits(old: Type, new: Type) -> bool:
        if isinstance(old, TensorType) and isinstance(new, TensorType):
            return old.shape == new.shape or _lost(old, new) is not None
        return type(old) is type(new)

    return refit(program, inputs, variants, fits)


_DIMS = frozenset({"dim", "dims", "dim0", "dim1", "start_dim", "end_dim"})
"""Parameters that name dims: a change of sizes leaves them alone."""
_SIZES = frozenset({"shape", "sizes", "size"})
"""Parameters that are sizes: a change of sizes changes them."""


def _combined(node: Node, choices: Sequence[Sequence[Literal]]) -> Iterator[Pairs]:
    names = [name for name, _ in node.params]
    for count, values in enumerate(product(*choices)):
        if count == _MAX_VARIANTS:
            return
        yield tuple(zip(names, values, strict=True))


def _size_variants(program: Program, node: Node, operands: Sequence[Type], sizes: Mapping[int, int]) -> Iterator[Pairs]:
    """Parameters with sizes exchanged; shapes with one entry made to fit; positions and counts brought within range."""
    exchanged = tuple((name, _exchanged(value, sizes) if name in _SIZES else value) for name, value in node.params)
    yield exchanged
    yield from _fitted(program, node, operands, exchanged)
    choices = [
        (value,) if name in _DIMS else dict.fromkeys((kept, value, *_within(value, sizes)))
        for (name, value), (_, kept) in zip(node.params, exchanged, strict=True)
    ]
    yield from _combined(node, [tuple(options) for options in choices])


def _within(value: Literal, sizes: Mapping[int, int]) -> Iterator[Literal]:
    """What a position or a count may become when sizes shrink."""
    yield _exchanged(value, sizes)
    if isinstance(value, int) and not isinstance(value, bool):
        yield from (0, 1)


def _fitted(program: Program, node: Node, operands: Sequence[Type], pairs: Pairs) -> Iterator[Pairs]:
    """Where a parameter was a shape of as many elements as the operand has, let one entry make up for the change."""
    if not operands or not isinstance(operands[0], TensorType):
        return
    before = program.types[node.args[0]]
    for place, ((name, value), (_, old)) in enumerate(zip(pairs, node.params, strict=True)):
        shape, original = _integers(value), _integers(old)
        if shape is None or original is None or name in _DIMS or not isinstance(before, TensorType):
            continue
        if prod(original) != before.numel:
            continue
        for entry in range(len(shape)):
            others = prod(shape[:entry] + shape[entry + 1 :])
            if others > 0 and operands[0].numel % others == 0:
                fitted = (*shape[:entry], operands[0].numel // others, *shape[entry + 1 :])
                yield (*pairs[:place], (name, fitted), *pairs[place + 1 :])


def _exchanged(value: Literal, sizes: Mapping[int, int]) -> Literal:
    match value:
        case bool():
            return value
        case int():
            return sizes.get(value, value)
        case tuple():
            return tuple(_exchanged(entry, sizes) for entry in value)
        case _:
            return value


def _resized(spec: InputSpec, sizes: Mapping[int, int]) -> InputSpec:
    shape = tuple(sizes.get(size, size) for size in spec.type.shape)
    high = spec.type.high
    if high is not None:
        extra = 1 if spec.regime is Regime.LENGTHS else 0
        bounds = [after for before, after in sizes.items() if after < high - extra <= before]
        high = min(bounds, default=high - extra) + extra
    changed = replace(spec.type, shape=shape, high=high)
    return replace(spec, type=changed, layout=fitting_layout(spec.layout, shape))


def _without_dim(spec: InputSpec, dim: int) -> InputSpec:
    """An input without one dim; its layout is kept where it can be."""
    shape = spec.type.shape[:dim] + spec.type.shape[dim + 1 :]
    kept = tuple(entry - (entry > dim) for entry in spec.layout.dims if entry != dim)
    layout = replace(spec.layout, dims=kept) if kept else Layout()
    return replace(spec, type=replace(spec.type, shape=shape), layout=fitting_layout(layout, shape))


def _lost(old: Type, new: Type) -> int | None:
    """Which dim `new` lacks, if that is all the difference."""
    if isinstance(old, TensorType) and isinstance(new, TensorType) and old.rank == new.rank + 1:
        for dim in range(old.rank - 1, -1, -1):
            if old.shape[:dim] + old.shape[dim + 1 :] == new.shape:
                return dim
    return None


def _dim_choices(value: Literal, gone: int, rank: int) -> Iterator[Literal]:
    """What a parameter can become when its operand of `rank` loses dim `gone`."""
    numbers = _integers(value)
    if numbers is not None:
        if all(-rank <= number < rank for number in numbers):
            dims = [number % rank for number in numbers]
            if kept := tuple(dim - (dim > gone) for dim in dims if dim != gone):
                yield kept
        for entry in range(len(numbers)) if len(numbers) > 1 else ():
            yield numbers[:entry] + numbers[entry + 1 :]
    elif isinstance(value, int) and not isinstance(value, bool):
        if value > gone:
            yield value - 1
        elif value < 0 and value % rank < gone:
            yield value + 1
    yield value


def _integers(value: Literal) -> tuple[int, ...] | None:
    """A tuple of integers, or None."""
    if not isinstance(value, tuple):
        return None
    numbers = tuple(entry for entry in value if isinstance(entry, int) and not isinstance(entry, bool))
    return numbers if len(numbers) == len(value) else None
