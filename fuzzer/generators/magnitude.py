"""How large values can get, from the inputs' regimes on: an upper bound that ignores NaN and infinities."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, prod

from fuzzer.input_source import base_shape
from fuzzer.ops import OpSpec, Params
from fuzzer.program import DType, InputSpec, Regime, Type

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
            return float(prod(base_shape(spec)))
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
