"""The float64 reference: the program's own operators on the CPU, every floating type replaced by float64.

On the way it notices whether the program is exact: then every order of evaluation gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fuzzer.observation import Observation
from fuzzer.targets.exactness import Exactness
from fuzzer.targets.harness import Breadcrumb, Loaded, copy_inputs, run_once
from fuzzer.verdict import Stage


def run_reference(loaded: Loaded, training: bool, breadcrumb: Breadcrumb) -> tuple[Observation, bool]:
    """One run in float64, and whether the program is exact on these inputs. Needs memory for twice the inputs."""
    inputs = copy_inputs(loaded.inputs, training=training, rewrite=widen)
    exactness = Exactness()
    for value in loaded.inputs:
        if isinstance(value, torch.Tensor):
            exactness.see_input(value)
    with default_dtype(torch.float64), Float64(exactness):
        seen = run_once(
            loaded.function,
            inputs,
            loaded.names,
            target="reference",
            stage=Stage.REFERENCE,
            training=training,
            breadcrumb=breadcrumb,
        )
    return seen, exactness.holds and seen.failure is None


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in float64; integers and bools as they are."""
    return tensor.to(torch.float64) if tensor.dtype.is_floating_point else tensor


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Sets torch's default dtype within the block: what a float that meets an integer tensor becomes."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Float64(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Turns every request for a floating dtype, by `.to`, a factory or `dtype=`, into one for float64."""

    def __init__(self, exactness: Exactness) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._exactness = exactness

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten.view.dtype:
            raise NotImplementedError("a view of bits as another dtype has no float64 counterpart")
        for value in (*args, *(kwargs or {}).values()):
            if isinstance(value, torch.dtype) and value.is_floating_point:
                self._exactness.see_dtype(value)
        wide_args = tuple(_widen_dtype(value) for value in args)
        wide_kwargs = {name: _widen_dtype(value) for name, value in (kwargs or {}).items()}
        if self._exactness.holds:
            self._exactness.before(func, wide_args, wide_kwargs)
        result = func(*wide_args, **wide_kwargs)
        if func in (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default):
            result = widen(result)
        if self._exactness.holds:
            self._exactness.after(func, wide_args, result)
        return result


def _widen_dtype(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value
