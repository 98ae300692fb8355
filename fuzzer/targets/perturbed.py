"""Eager runs that are as right as the plain one: other roundings, and other choices among equal values.

Where they disagree with it, the program's result is not determined by its inputs to the precision of its types, and
no result of a compiler can be called wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

ULPS = (1, 1, 4)
"""By how many units in the last place each of the rounding runs moves values."""

SUMMED = SUMS | {"mean"}

aten = torch.ops.aten


def run_perturbed(loaded: Loaded, training: bool, breadcrumb: Breadcrumb, *, exact: bool) -> tuple[Observation, ...]:
    """The perturbed eager runs of a program on the CPU; only the one with other ties for an exact program."""
    last = LastOfEquals()  # type: ignore[no-untyped-call]  # torch's own
    runs = [_run(loaded, training, breadcrumb, "eager, last of equals", last, None)]
    if not exact:
        for number, ulps in enumerate(ULPS):
            noise = Noise(seed=number, ulps=ulps)
            name = f"eager, moved by {ulps} ulp ({number})"
            runs.append(_run(loaded, training, breadcrumb, name, Rounded(noise), noise))
    return tuple(run for run in runs if run.failure is None)


def _run(
    loaded: Loaded, training: bool, breadcrumb: Breadcrumb, target: str, mode: TorchDispatchMode, noise: Noise | None
) -> Observation:
    inputs = copy_inputs(loaded.inputs, training=training, rewrite=noise.move_input if noise else None)
    with mode:
        return run_once(
            loaded.function,
            inputs,
            loaded.names,
            target=target,
            stage=Stage.EAGER,
            training=training,
            breadcrumb=breadcrumb,
        )


class Noise:
    """Random relative changes of a few units in the last place. Exact small integers and non-finite values stay."""

    def __init__(self, *, seed: int, ulps: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._ulps = ulps

    def move_input(self, tensor: torch.Tensor) -> torch.Tensor:
        """An input; a tensor of small integers is meant as it is."""
        return tensor.clone() if not tensor.dtype.is_floating_point or is_integral(tensor) else self.move(tensor)

    def move(self, tensor: torch.Tensor, error: torch.Tensor | None = None) -> torch.Tensor:
        """The tensor times 1 + k epsilon, k random in [-ulps, ulps], plus a random share of `error`, same strides."""
        epsilon = EPSILON.get(tensor.dtype, 0.0)
        wide = tensor.double()
        change = wide * (self._draw(tensor.shape) * (self._ulps * epsilon))
        if error is not None:
            change = change + error * self._draw(tensor.shape)
        moved = torch.where(wide.isfinite() & change.isfinite(), wide + change, wide)
        return tensor.clone().copy_(moved)

    def error_of_sum(self, absolute: torch.Tensor) -> torch.Tensor:
        """How far a sum of values of this absolute sum may be off: float32 accumulation, in any order."""
        return absolute.double() * (self._ulps * EPSILON[torch.float32])

    def _draw(self, shape: torch.Size) -> torch.Tensor:
        return torch.rand(shape, generator=self._generator, dtype=torch.float64) * 2 - 1


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
