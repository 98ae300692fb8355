"""Programs as values: typed, in single static assignment form, immutable, and free of torch.

A `Program` is a list of inputs, a list of statements (`Node`) that each define one name, the names it
returns, and the `Mode` it runs in. `fuzzer.source` prints it to plain PyTorch and parses it back; a `Case`
is that text plus the mode, which is all that a target needs, so that a user's own file runs like a generated one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from fuzzer.backports import StrEnum

Literal: TypeAlias = "bool | int | float | str | tuple[Literal, ...] | None"
"""A value that a statement can spell out: an argument that is not a tensor."""


class FuzzerError(Exception):
    """A fault of the user or of the fuzzer, never of the code under test; the command line prints it, exit status 2."""


class DType(StrEnum):
    """The element types that programs use, by their torch name."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    BOOL = "bool"

    @property
    def is_floating(self) -> bool:
        return self in (DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)

    @property
    def is_integer(self) -> bool:
        return self in (DType.INT64, DType.INT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """Shape and dtype of a tensor; `high` bounds an integer tensor's values: each lies in [0, high)."""

    shape: tuple[int, ...]
    dtype: DType
    high: int | None = None

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.shape):
            raise ValueError(f"negative size in shape {self.shape}")
        if self.high is not None and not self.dtype.is_integer:
            raise ValueError(f"high={self.high} on dtype {self.dtype}: only integer tensors are bounded")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarType:
    """A Python number that left the graph through `.item()`; `high` bounds an integer: it lies in [0, high]."""

    dtype: DType
    """FLOAT64 for float, INT64 for int, BOOL for bool."""
    high: int | None = None


Type: TypeAlias = TensorType | ScalarType


class Regime(StrEnum):
    """How an input's values are drawn."""

    EXACT = "exact"
    """Small integers in any dtype: sums and products stay exact in float32 for short reductions."""
    IOTA = "iota"
    """0, 1, 2, ... in row-major order."""
    NORMAL = "normal"
    WIDE = "wide"
    """Normal values scaled by powers of two over a wide range."""
    SPECIALS = "specials"
    """Normal values mixed with NaN, infinities, signed zeros and subnormals."""
    SPARSE = "sparse"
    """A boolean mask with few True, or a tensor that is zero nearly everywhere."""
    INDEX = "index"
    """Integers in [0, high), with repeats."""
    UNIQUE = "unique"
    """Integers in [0, high), each at most once."""
    LENGTHS = "lengths"
    """Positive integers whose sum is high - 1: the sizes of a ragged batch."""
    ZEROS = "zeros"
    ONES = "ones"


class LayoutKind(StrEnum):
    """How an input lies in memory."""

    CONTIGUOUS = "contiguous"
    PERMUTED = "permuted"
    """Made in another order of its dims, then permuted by `Layout.dims`."""
    STRIDED = "strided"
    """Every `step`-th element of a larger tensor along `dims[0]`, from element `offset` on."""
    EXPANDED = "expanded"
    """Size 1 along each of `dims`, then expanded: stride 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    kind: LayoutKind = LayoutKind.CONTIGUOUS
    dims: tuple[int, ...] = ()
    offset: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """One input tensor: everything that is needed to make it, bit for bit."""

    name: str
    type: TensorType
    regime: Regime = Regime.NORMAL
    layout: Layout = field(default_factory=Layout)
    seed: int = 0
    """Seed of this input's own generator, so that dropping another input does not change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One statement: `name = op(args, params)`."""

    name: str
    op: str
    """Name of an `OpSpec` in `fuzzer.ops`."""
    args: tuple[str, ...]
    params: tuple[tuple[str, Literal], ...] = ()
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How a program is run."""

    training: bool = False
    """Differentiate with respect to every floating input, with fixed non-uniform output gradients."""
    dynamic: bool = False
    """`torch.compile(dynamic=True)`."""
    calls: int = 1
    """How often the compiled function is called, each time on fresh copies of the inputs."""
    config: tuple[tuple[str, bool | int | str], ...] = ()
    """Inductor options for this program alone (`torch.compile(options=...)`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A whole program. An instance is well-formed: names are defined once and before use."""

    inputs: tuple[InputSpec, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    mode: Mode = field(default_factory=Mode)

    def __post_init__(self) -> None:
        known = {spec.name for spec in self.inputs}
        if len(known) != len(self.inputs):
            raise ValueError("two inputs share a name")
        for node in self.nodes:
            missing = [name for name in node.args if name not in known]
            if missing:
                raise ValueError(f"{node.name} uses {missing[0]} before it is defined")
            if node.name in known:
                raise ValueError(f"{node.name} is defined twice")
            known.add(node.name)
        if not self.outputs:
            raise ValueError("a program returns at least one value")
        for name in self.outputs:
            if name not in known:
                raise ValueError(f"output {name} is not defined")

    @property
    def types(self) -> Mapping[str, Type]:
        """The type of every name."""
        inputs: dict[str, Type] = {spec.name: spec.type for spec in self.inputs}
        return inputs | {node.name: node.type for node in self.nodes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a target runs: Python text that defines `inputs()` and `program(...)`, and the mode to run it in."""

    source: str
    mode: Mode = field(default_factory=Mode)
