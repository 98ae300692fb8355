"""Eager runs that are as right as the plain one: other roundings, and other choices among equal values.

Where they disagree with it, the program's result is not determined by its inputs to the precision of its types, and
no result of a compiler can be called wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from fuzzer.observation import Observation
from fuzzer.targets.exactness import LIMITS
from fuzzer.targets.harness import Breadcrumb, Loaded, copy_inputs, run_once
from fuzzer.targets.operators import MOVES, SUMS, base_name, floating_in, is_view
from fuzzer.verdict import Stage

EPSILON = {torch.float64: 2.0**-23, torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
"""Distance of neighbours near 1. float64 counts as float32: devices compute it so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """How one run moves values: by up to so many units in the last place, up, down (-1), or at random (0)."""

    ulps: int
    direction: int = 0


FIRST_MOVES = (Move(ulps=1, direction=1), Move(ulps=1, direction=-1), Move(ulps=1), Move(ulps=4))
MORE_MOVES = (Move(ulps=4, direction=1), Move(ulps=4, direction=-1), *[Move(ulps=1)] * 6, *[Move(ulps=4)] * 4)
"""For small programs only: enough that an element near a tie falls on both sides of it."""

SMALL = 1 << 16
"""Elements of all inputs together, up to which MORE_MOVES are made."""

SUMMED = SUMS | {"mean"}

aten = torch.ops.aten


def perturbed_runs(
    loaded: Loaded, training: bool, breadcrumb: Breadcrumb, *, exact: bool
) -> Iterator[tuple[Observation, ...]]:
    """Batches of perturbed eager runs on the CPU, to be stopped when they explain enough. Failed runs are left out.

    The first chooses other ties; for an exact program it is the only one.
    """
    last = LastOfEquals()  # type: ignore[no-untyped-call]  # torch's own
    yield _run(loaded, training, breadcrumb, "eager, last of equals", last, None)
    if exact:
        return
    small = sum(value.numel() for value in loaded.inputs if isinstance(value, torch.Tensor)) <= SMALL
    seed = 0
    for moves in (FIRST_MOVES, MORE_MOVES) if small else (FIRST_MOVES,):
        runs: tuple[Observation, ...] = ()
        for move in moves:
            noise = Noise(seed=seed, move=move)
            runs += _run(loaded, training, breadcrumb, f"eager, moved ({seed})", Rounded(noise), noise)
            seed += 1
        yield runs


def _run(
    loaded: Loaded, training: bool, breadcrumb: Breadcrumb, target: str, mode: TorchDispatchMode, noise: Noise | None
) -> tuple[Observation, ...]:
    inputs = copy_inputs(loaded.inputs, training=training, rewrite=noise.move_input if noise else None)
    with mode:
        seen = run_once(
            loaded.function,
            inputs,
            loaded.names,
            target=target,
            stage=Stage.EAGER,
            training=training,
            breadcrumb=breadcrumb,
        )
    return () if seen.failure else (seen,)


class Noise:
    """Relative changes of a few units in the last place. Exact small integers and non-finite values stay."""

    def __init__(self, *, seed: int, move: Move) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._ulps = move.ulps
        self._direction = move.direction

    def move_input(self, tensor: torch.Tensor) -> torch.Tensor:
        """An input; a tensor of small integers is meant as it is."""
        return tensor.clone() if not tensor.dtype.is_floating_point or is_integral(tensor) else self.move(tensor)

    def move(self, tensor: torch.Tensor, error: torch.Tensor | None = None) -> torch.Tensor:
        """The tensor moved by up to `ulps` units in the last place, plus a share of `error`, same strides."""
        epsilon = EPSILON.get(tensor.dtype, 0.0)
        wide = tensor.double()
        change = wide.abs() * (self._draw(tensor.shape) * (self._ulps * epsilon))
        if error is not None:
            change = change + error * self._draw(tensor.shape)
        moved = torch.where(wide.isfinite() & change.isfinite(), wide + change, wide)
        return tensor.clone().copy_(moved)

    def error_of_sum(self, absolute: torch.Tensor) -> torch.Tensor:
        """How far a sum of values of this absolute sum may be off: float32 accumulation, in any order."""
        return absolute.double() * (self._ulps * EPSILON[torch.float32])

    def _draw(self, shape: torch.Size) -> torch.Tensor:
        """Shares of the largest move, from a half to all of it, so that it is seldom rounded away."""
        share = torch.rand(shape, generator=self._generator, dtype=torch.float64) * 0.5 + 0.5
        if self._direction:
            return share * self._direction
        return share * (torch.randint(0, 2, shape, generator=self._generator) * 2 - 1)


def is_integral(tensor: torch.Tensor) -> bool:
    """Whether every element is an integer that is exact in the tensor's dtype."""
    if not tensor.numel():
        return True
    return tensor.abs().amax().item() < LIMITS.get(tensor.dtype, 0.0) and bool((tensor == tensor.round()).all())


class Rounded(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Moves the floating result of every operator that rounds; an operator from integers to integers is exact."""

    def __init__(self, noise: Noise) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._noise = noise

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = base_name(func)
        if name in MOVES or is_view(func):
            return func(*args, **kwargs)
        operands = floating_in((args, kwargs))
        from_integers = bool(operands) and all(is_integral(tensor) for tensor in operands)
        error = self._sum_error(func, args, kwargs) if name in SUMMED and operands and not from_integers else None
        result = func(*args, **kwargs)
        for value in floating_in(result):
            if not (from_integers and is_integral(value)) and _is_dense(value):
                value.copy_(self._noise.move(value, error))
        return result

    def _sum_error(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
        absolute_args, absolute_kwargs = pytree.tree_map_only(
            torch.Tensor, lambda t: t.double().abs() if t.dtype.is_floating_point else t, (tuple(args), dict(kwargs))
        )
        absolute_kwargs.pop("dtype", None)
        return self._noise.error_of_sum(func(*absolute_args, **absolute_kwargs))


def _is_dense(tensor: torch.Tensor) -> bool:
    """No two elements share memory: stride 0 only where the size is 1."""
    return all(stride or size <= 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


class LastOfEquals(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Chooses the last of equal values, and the last NaN, where eager chooses the first."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        bound = {arg.name: value for arg, value in zip(func._schema.arguments, args, strict=False)} | kwargs
        packet = func.overloadpacket
        if packet in (aten.argmax, aten.argmin) and func._overloadname == "default":
            tensor, dim, keepdim = bound["self"], bound.get("dim"), bound.get("keepdim", False)
            if dim is None or tensor.dim() == 0:
                found = tensor.numel() - 1 - func(tensor.reshape(-1).flip(0))
                return found.reshape([1] * tensor.dim()) if keepdim else found
            return tensor.shape[dim] - 1 - func(tensor.flip(dim), dim, keepdim)
        if func in (aten.max.dim, aten.min.dim) and bound["self"].dim():
            tensor, dim = bound["self"], bound["dim"]
            values, indices = func(tensor.flip(dim), dim, bound.get("keepdim", False))
            return values, tensor.shape[dim] - 1 - indices
        if func in (aten.sort.default, aten.sort.stable, aten.topk.default) and bound["self"].dim():
            if bound.get("stable"):
                return func(*args, **kwargs)
            tensor, dim = bound["self"], bound.get("dim", -1)
            bound["self"] = tensor.flip(dim)
            values, indices = func(**bound)
            return values, tensor.shape[dim] - 1 - indices
        return func(*args, **kwargs)
