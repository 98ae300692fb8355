"""How big a program is: a well-founded order, so that accepting only smaller programs is certain to end."""

from __future__ import annotations

from typing import TypeAlias

from fuzzer.program import DType, InputSpec, LayoutKind, Literal, Program, Regime, TensorType

Size: TypeAlias = tuple[int, ...]
"""Natural numbers, compared from left to right: what a reader minds most comes first."""

DTYPES = (
    DType.FLOAT32,
    DType.INT64,
    DType.BOOL,
    DType.INT32,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.FLOAT64,
)
REGIMES = (
    Regime.NORMAL,
    Regime.IOTA,
    Regime.INDEX,
    Regime.EXACT,
    Regime.SPARSE,
    Regime.ONES,
    Regime.ZEROS,
    Regime.UNIQUE,
    Regime.LENGTHS,
    Regime.WIDE,
    Regime.SPECIALS,
)
"""Plain first. Ones and zeros are not: a witness made of equal values shows a defect by luck alone."""
_BOUNDED = (Regime.INDEX, Regime.UNIQUE, Regime.LENGTHS)
"""Regimes whose bound is a choice; the others' follows from shape and regime."""
_SEEDLESS = (Regime.IOTA, Regime.ZEROS, Regime.ONES)
_LAYOUTS = (LayoutKind.CONTIGUOUS, LayoutKind.PERMUTED, LayoutKind.STRIDED, LayoutKind.EXPANDED)


def size(program: Program) -> Size:
    """Statements, outputs, inputs, elements, ranks, bounds, modes, layouts, dtypes, values, names, parameters, seeds.

    A seed is as plain as can be when it is the input's position: two inputs of one shape then still differ.
    """
    types = [kind for kind in program.types.values() if isinstance(kind, TensorType)]
    mode = program.mode
    return (
        len(program.nodes),
        len(program.outputs),
        len(program.inputs),
        sum(kind.numel for kind in types),
        sum(kind.rank for kind in types),
        sum(spec.type.high or 0 for spec in program.inputs if spec.regime in _BOUNDED),
        mode.training + mode.dynamic + mode.calls - 1 + len(mode.config),
        sum(_layout_weight(spec) for spec in program.inputs),
        sum(DTYPES.index(spec.type.dtype) for spec in program.inputs),
        sum(REGIMES.index(spec.regime) for spec in program.inputs),
        sum(len(node.op) for node in program.nodes),
        sum(weight(value) for node in program.nodes for _, value in node.params),
        sum(spec.seed != position and spec.regime not in _SEEDLESS for position, spec in enumerate(program.inputs)),
    )


def _layout_weight(spec: InputSpec) -> int:
    layout = spec.layout
    return _LAYOUTS.index(layout.kind) * 64 + layout.offset + layout.step - 1 + len(layout.dims)


def weight(value: Literal) -> int:
    """How far a parameter is from the plainest one: None, False, 0, the empty tuple."""
    match value:
        case None | False:
            return 0
        case bool():
            return 1
        case int():
            return 2 * abs(value) + (value < 0)
        case float():
            return 0 if value == 0 else 3 if value in (1.0, 2.0) else 4
        case str():
            return 1 if value in ("float32", "int64") else 2
        case tuple():
            return len(value) + sum(weight(entry) for entry in value)
