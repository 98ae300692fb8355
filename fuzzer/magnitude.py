"""How large values can get, from the inputs' regimes on: an upper bound that ignores NaN and infinities.

The generators use it to stay finite; oracles to know when a program on small integers is exact in every dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from fuzzer.input_source import base_shape
from fuzzer.ops import BY_NAME, OpSpec, Params, Trait
from fuzzer.ops.rules import exact_limit
from fuzzer.program import DType, InputSpec, Literal, Node, Program, Regime, ScalarType, Type

_NORMAL = 6.0
"""Larger normal values are so rare that no input of a million elements is expected to hold one."""


def input_size(spec: InputSpec) -> float:
    """Bound of an input's absolute values."""
    if spec.type.dtype is DType.BOOL:
        return 1.0
    match spec.regime:
        case Regime.EXACT:
            return 4.0
        case Regime.WIDE:
            return 1e5 if spec.type.dtype.is_integer else _NORMAL * 2.0**8
        case Regime.IOTA:
            total = 1
            for size in base_shape(spec):
                total *= size
            return float(total)
        case Regime.INDEX | Regime.UNIQUE | Regime.LENGTHS:
            return float(spec.type.high or 1)
        case Regime.ZEROS | Regime.ONES:
            return 1.0
        case _:
            return _NORMAL


def node_size(spec: OpSpec, sizes: Sequence[float], types: Sequence[Type], params: Params) -> float:
    """Bound of a statement's absolute values, from those of its arguments."""
    size = spec.grows(sizes, tuple(types), params)
    return float("inf") if isnan(size) else float(size)


def sizes_of(program: Program) -> dict[str, float]:
    """Bound of the absolute values of every name."""
    types = program.types
    sizes = {spec.name: input_size(spec) for spec in program.inputs}
    for node in program.nodes:
        sizes[node.name] = node_size(
            BY_NAME[node.op],
            [sizes[name] for name in node.args],
            [types[name] for name in node.args],
            Params(node.params),
        )
    return sizes


def is_exact(program: Program) -> bool:
    """Is every result, and every partial result, an integer that its dtype holds? Then eager's is the only right one.

    Infinities that `masked_fill` writes are exact too; what is computed from them may be NaN, exactly.
    """
    whole = (Regime.EXACT, Regime.IOTA, Regime.ZEROS, Regime.ONES)
    if any(spec.type.dtype.is_floating and spec.regime not in whole for spec in program.inputs):
        return False
    sizes = sizes_of(program)
    if any(Trait.MUTATES in BY_NAME[node.op].traits for node in program.nodes):
        # A write changes the values behind other names; their bounds are then no longer known.
        top = max(sizes.values())
        sizes = dict.fromkeys(sizes, top)
    for spec in program.inputs:
        if sizes[spec.name] > exact_limit(spec.type.dtype):
            return False
    return all(_exact_node(node, sizes[node.name], program) for node in program.nodes)


def _exact_node(node: Node, size: float, program: Program) -> bool:
    if Trait.EXACT not in BY_NAME[node.op].traits or not all(_is_whole(value) for _, value in node.params):
        return False
    dtypes = [program.types[name].dtype for name in node.args]
    if not isinstance(node.type, ScalarType):
        dtypes.append(node.type.dtype)
    return all(size <= exact_limit(dtype) for dtype in dtypes if dtype is not DType.BOOL)


def _is_whole(value: Literal) -> bool:
    if isinstance(value, tuple):
        return all(_is_whole(item) for item in value)
    return not isinstance(value, float) or not isfinite(value) or value.is_integer()
