"""Whether a program is exact on its inputs: every floating value an integer so small that no rounding ever happens.

Then sums may be split and reordered and products fused, and still only one result is right, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fuzzer.targets.operators import ARITHMETIC, MOVES, SUMS, UNINITIALISED, base_name, floating_in, is_view, tensors_in

LIMITS = {torch.float64: 2.0**24, torch.float32: 2.0**24, torch.float16: 2.0**11, torch.bfloat16: 2.0**8}
"""Integers below are exact in the dtype. float64 has float32's: devices compute it in float32."""


class Exactness:
    """Watches the operators of one run; `holds` until one of them could round."""

    def __init__(self) -> None:
        self.holds = True
        self._limit = LIMITS[torch.float32]

    def see_input(self, tensor: torch.Tensor) -> None:
        """An input, in the program's own dtype."""
        if tensor.dtype.is_complex:
            self.holds = False
        elif tensor.dtype.is_floating_point:
            self.see_dtype(tensor.dtype)
            self._check(tensor)

    def see_dtype(self, dtype: torch.dtype) -> None:
        """A floating dtype that the program asks for: values have to be exact in the narrowest one."""
        self._limit = min(self._limit, LIMITS.get(dtype, 0.0))

    def before(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """An operator that is about to run, its floating operands in float64."""
        if not floating_in((args, kwargs)):
            return
        if any(isinstance(value, float) and not value.is_integer() for value in pytree.tree_leaves((args, kwargs))):
            self.holds = False
        name = base_name(func)
        if self.holds and name in SUMS:
            absolute_args, absolute_kwargs = pytree.tree_map_only(
                torch.Tensor, lambda t: t.abs() if t.dtype.is_floating_point else t, (tuple(args), dict(kwargs))
            )
            for tensor in tensors_in(func(*absolute_args, **absolute_kwargs)):
                self._check(tensor)

    def after(self, func: Any, args: Sequence[Any], result: Any) -> None:
        """The same operator, with its result."""
        floating = floating_in(result)
        name = base_name(func)
        if not floating or is_view(func) or name in UNINITIALISED:
            return
        if name not in MOVES | ARITHMETIC | SUMS and not (name == "pow" and tuple(args[1:]) == (2,)):
            self.holds = False
        for tensor in floating:
            self._check(tensor)

    def _check(self, tensor: torch.Tensor) -> None:
        if self.holds and tensor.dtype.is_floating_point and tensor.numel():
            small = tensor.detach().abs().amax().item() < self._limit  # NaN is not
            self.holds = small and bool((tensor == tensor.round()).all())
