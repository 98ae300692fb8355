"""What one target saw when it ran one program: values that oracles compare, with no trace of the target itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import torch

from fuzzer.verdict import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One tensor or Python number that a program returned, mutated or differentiated."""

    path: str
    """Where it was: `output[0]`, `input[x0]`, `gradient[x1]`."""
    value: torch.Tensor
    """On the CPU, same strides as the original; a Python number becomes a 0-d tensor."""
    stride: tuple[int, ...]
    requires_grad: bool = False
    is_number: bool = False
    alias: str = ""
    """Path of the first earlier leaf (inputs first) whose storage this one shares, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception of the code under test, as a value."""

    stage: Stage
    origin: str
    """Exception type and the innermost function of the stack under test; never a message."""
    message: str
    """First lines of the exception's text, for people."""
    unsupported: bool = False
    """A clear refusal (a NotImplementedError of the stand-in, a step that the simulator lacks)."""
    compile_error: bool = False
    """A tool refused a kernel, rather than Python code generation raising."""
    memory: bool = False
    """A kernel touched memory that is not its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One run of one program on one target."""

    target: str
    outputs: tuple[Leaf, ...] = ()
    inputs: tuple[Leaf, ...] = ()
    """The inputs after the run, in order: what was mutated shows here."""
    gradients: tuple[Leaf, ...] = ()
    failure: Failure | None = None
    kernels: tuple[tuple[str, str], ...] = ()
    """Name and Triton source of each kernel that was compiled."""
    launches: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Kernel and grid of each launch, in order."""
    seconds: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """One program, everywhere it ran."""

    reference: Observation
    """CPU, float64."""
    eager: tuple[Observation, ...]
    """CPU eager first, then the device's eager, then perturbed eager runs."""
    compiled: tuple[Observation, ...]
    """One per call of the compiled function, and per recompilation."""
    exact: bool = False
    """Every operation is exact on these inputs: eager's result is the only right one, to the bit."""

    @property
    def by_target(self) -> Mapping[str, Observation]:
        return {seen.target: seen for seen in (self.reference, *self.eager, *self.compiled)}

    @property
    def effect(self) -> str:
        """Digest of all that the compiled runs did: kernels, launches, failures and results, to the bit."""
        digest = sha256()
        for seen in self.compiled:
            digest.update(repr((seen.kernels, seen.launches)).encode())
            if seen.failure is not None:
                digest.update(repr((seen.failure.stage, seen.failure.origin)).encode())
            for leaf in (*seen.outputs, *seen.inputs, *seen.gradients):
                digest.update(repr((leaf.path, leaf.value.dtype, leaf.value.shape, leaf.stride, leaf.alias)).encode())
                digest.update(_bytes(leaf.value))
        return digest.hexdigest()


def _bytes(tensor: torch.Tensor) -> bytes:
    """The elements in order; a tensor of one element may have any stride, and counts as contiguous all the same."""
    flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
    return flat.clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes()
