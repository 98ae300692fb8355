"""Whether one compiled tensor is right, element by element, as far as eager and float64 know what is right.

Floats: |compiled - float64| <= C1 noise + C2 typical noise + C3 epsilon |float64|, where the noise of an element is the
largest deviation of any eager run from float64. An element whose allowed error is a large part of the whole tensor's
scale is ill-conditioned: nothing can be said about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fuzzer.observation import Leaf
from fuzzer.verdict import Outcome

C1 = 10.0
C2 = 5.0
C3 = 2.0

EPSILON = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
"""Distance of neighbours near 1; every other type counts as float32, in which devices compute float64 too."""

FLOAT32_EPSILON = 2.0**-23
FLOAT32_TINY = 2.0**-126
"""Results below may be flushed to zero."""

ILL_CONDITIONED = 0.01
"""An element is ill-conditioned when its noise allows for more than this part of the tensor's largest value..."""
ILL_CONDITIONED_ULPS = 32
"""...and for more than this many units in the last place of it."""

BEYOND_DOUBT = 1e4
"""Even an ill-conditioned element is wrong when its error is this many times what is allowed."""

CLASSES = ("finite", "nan", "inf", "-inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """The conclusion about one tensor."""

    outcome: Outcome
    origin: str = ""
    """`value` or `non-finite`, for a BUG."""
    evidence: tuple[str, ...] = ()


AGREES = Closeness(outcome=Outcome.PASS)


def compare(leaf: Leaf, eager: Sequence[Leaf], reference: Leaf | None, *, exact: bool) -> Closeness:
    """Compares a compiled leaf with the same leaf of every eager run, the plain one first, and of the float64 run."""
    plain = eager[0]
    if reference is not None and reference.value.shape != plain.value.shape:
        reference = None
    same_shape = [run for run in eager if run.value.shape == plain.value.shape]
    if _same(leaf.value, plain.value):
        return AGREES
    compiled, expected = _real(leaf.value), _real(plain.value)
    others = [_real(run.value) for run in same_shape[1:]]
    center = _real(reference.value) if reference is not None else None
    evidence = _Evidence(leaf.path, leaf.value, compiled, expected, center)
    shapes_vary = len(same_shape) < len(eager)
    if exact or not compiled.dtype.is_floating_point:
        if center is not None and not exact:
            others.append(center)
        return _compare_exactly(compiled, expected, others, evidence, shapes_vary=shapes_vary)
    return _compare_floats(compiled, [expected, *others], center, evidence, shapes_vary=shapes_vary)


def _compare_exactly(
    compiled: torch.Tensor,
    expected: torch.Tensor,
    others: Sequence[torch.Tensor],
    evidence: _Evidence,
    *,
    shapes_vary: bool,
) -> Closeness:
    bad = ~_equal(compiled, expected)
    doubtful = torch.full_like(bad, shapes_vary)
    for other in others:
        doubtful |= ~_equal(other.to(expected.dtype), expected)
    if bool((bad & ~doubtful).any()):
        lines = evidence.lines(bad & ~doubtful, torch.zeros(bad.shape, dtype=torch.float64))
        strange = bad & ~doubtful & ~compiled.isfinite()
        return Closeness(outcome=Outcome.BUG, origin=_origin(strange, bad & ~doubtful), evidence=lines)
    if bool(bad.any()):
        lines = evidence.lines(bad, torch.zeros(bad.shape, dtype=torch.float64))
        return Closeness(outcome=Outcome.EXCUSED, evidence=(*lines, "eager runs disagree with each other there"))
    return AGREES


def _compare_floats(
    compiled: torch.Tensor,
    runs: Sequence[torch.Tensor],
    center: torch.Tensor | None,
    evidence: _Evidence,
    *,
    shapes_vary: bool,
) -> Closeness:
    epsilon = EPSILON.get(compiled.dtype, FLOAT32_EPSILON)
    value = compiled.double()
    candidates = [run.double() for run in ([center] if center is not None else []) + list(runs)]
    # The value to compare with: float64's where it is finite, else the first eager one that is.
    right = candidates[0].clone()
    for candidate in candidates[1:]:
        right = torch.where(right.isfinite(), right, candidate)
    shown = torch.zeros((len(CLASSES), *value.shape), dtype=torch.bool)
    noise = torch.zeros_like(value)
    for candidate in candidates:
        kinds = _classes(candidate)
        for number in range(len(CLASSES)):
            shown[number] |= kinds == number
        deviation = (candidate - right).abs()
        noise = torch.maximum(noise, torch.where(deviation.isfinite(), deviation, 0.0))
    kinds = _classes(value)
    right_class = shown.gather(0, kinds.unsqueeze(0)).squeeze(0)
    class_varies = shown.sum(0) > 1

    from_noise = C1 * noise + C2 * _typical(noise)
    allowed = from_noise + C3 * epsilon * right.abs() + FLOAT32_TINY
    error = (value - right).abs()
    far = right_class & (kinds == 0) & ~(error <= allowed)
    wrong_class = ~right_class
    scale = float(torch.where(right.isfinite(), right.abs(), 0.0).amax()) if right.numel() else 0.0
    share = max(ILL_CONDITIONED, ILL_CONDITIONED_ULPS * epsilon)
    doubtful = (from_noise > share * scale) & ~(error > BEYOND_DOUBT * allowed) | class_varies
    doubtful |= shapes_vary

    bad = far | wrong_class
    sure = (far & ~doubtful) | (wrong_class & ~class_varies & ~torch.full_like(bad, shapes_vary))
    if bool(sure.any()):
        return Closeness(
            outcome=Outcome.BUG, origin=_origin(wrong_class & sure, sure), evidence=evidence.lines(sure, allowed)
        )
    if bool(bad.any()):
        lines = (*evidence.lines(bad, allowed), "ill-conditioned: eager runs differ by too much there")
        return Closeness(outcome=Outcome.INCONCLUSIVE, evidence=lines)
    return AGREES


def _typical(noise: torch.Tensor) -> float:
    """Root mean square of an element's noise, leaving the noisiest tenth out: near-ties there make it no measure."""
    if noise.numel() == 0:
        return 0.0
    flat = noise.reshape(-1)
    bound = flat.kthvalue(max(1, int(0.9 * flat.numel()))).values
    usual = flat[flat <= bound]
    return float(usual.square().mean().sqrt())


def _origin(strange: torch.Tensor, bad: torch.Tensor) -> str:
    return "non-finite" if 2 * int(strange.sum()) > int(bad.sum()) else "value"


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.dtype.is_complex else tensor


def _equal(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    equal = one == other
    return equal | (one.isnan() & other.isnan()) if one.dtype.is_floating_point else equal


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(_equal(_real(one), _real(other)).all())


def _classes(tensor: torch.Tensor) -> torch.Tensor:
    """Index into CLASSES of each element."""
    return tensor.isnan() * 1 + (tensor == torch.inf) * 2 + (tensor == -torch.inf) * 3


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Describes elements for people."""

    path: str
    original: torch.Tensor
    compiled: torch.Tensor
    eager: torch.Tensor
    center: torch.Tensor | None

    def lines(self, bad: torch.Tensor, allowed: torch.Tensor) -> tuple[str, ...]:
        """How many elements are bad, then the first and the worst of them."""
        shape = "x".join(str(size) for size in self.original.shape) or "scalar"
        kind = str(self.original.dtype).removeprefix("torch.")
        head = f"{self.path} ({kind} {shape}): {int(bad.sum())} of {bad.numel()} elements"
        error = (self.compiled.double() - self.eager.double()).abs()
        error = torch.where(bad, torch.where(error.isnan(), torch.inf, error), -1.0)
        first = int(bad.reshape(-1).to(torch.uint8).argmax())
        worst = int(error.reshape(-1).argmax())
        return (head, *(self._element(index, bad.shape, allowed) for index in dict.fromkeys((first, worst))))

    def _element(self, flat: int, shape: torch.Size, allowed: torch.Tensor) -> str:
        index: list[int] = []
        rest = flat
        for size in reversed(shape):
            index.insert(0, rest % size)
            rest //= size
        place = tuple(index)
        center = f", float64 {self.center[place].item()!r}" if self.center is not None else ""
        return (
            f"{self.path}[{', '.join(map(str, place))}]: compiled {self.compiled[place].item()!r}, "
            f"eager {self.eager[place].item()!r}{center}, allowed error {allowed[place].item():.3g}"
        )
