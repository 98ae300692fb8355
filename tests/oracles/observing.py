"""Builds observations from tensors, as if a program had returned, changed or differentiated them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fuzzer.observation import Failure, Leaf, Observation, Observations
from fuzzer.verdict import Stage


def leaf(path: str, value: torch.Tensor, *, alias: str = "", is_number: bool = False) -> Leaf:
    return Leaf(
        path=path,
        value=value,
        stride=tuple(value.stride()),
        requires_grad=value.requires_grad,
        is_number=is_number,
        alias=alias,
    )


def run(
    target: str,
    *outputs: torch.Tensor,
    inputs: Sequence[torch.Tensor] = (),
    gradients: Sequence[torch.Tensor] = (),
    failure: Failure | None = None,
) -> Observation:
    return Observation(
        target=target,
        outputs=tuple(leaf(f"output[{position}]", value) for position, value in enumerate(outputs)),
        inputs=tuple(leaf(f"input[x{position}]", value) for position, value in enumerate(inputs)),
        gradients=tuple(leaf(f"gradient[x{position}]", value) for position, value in enumerate(gradients)),
        failure=failure,
    )


def seen(
    reference: Observation, eager: Observation, compiled: Observation, *more: Observation, exact: bool = False
) -> Observations:
    return Observations(reference=reference, eager=(eager, *more), compiled=(compiled,), exact=exact)


def three_outputs(
    reference: torch.Tensor, eager: torch.Tensor, compiled: torch.Tensor, *more: torch.Tensor, exact: bool = False
) -> Observations:
    """One output in float64, in eager, compiled, and in further eager runs."""
    others = [run(f"eager {number}", value) for number, value in enumerate(more)]
    return seen(run("reference", reference), run("eager", eager), run("compiled", compiled), *others, exact=exact)


def failing(
    target: str, *, stage: Stage = Stage.INDUCTOR, origin: str = "AssertionError:lower", **flags: bool
) -> Observation:
    return run(target, failure=Failure(stage=stage, origin=origin, message="AssertionError: no", **flags))
