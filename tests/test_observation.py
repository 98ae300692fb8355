"""The digest of what compiled runs did."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fuzzer.observation import Failure, Leaf, Observation, Observations
from fuzzer.verdict import Stage


def effect(value: torch.Tensor, **more: object) -> str:
    leaf = Leaf(path="output[0]", value=value, stride=value.stride())
    seen = Observation(target="compiled", outputs=(leaf,), **more)  # type: ignore[arg-type]
    return Observations(reference=Observation(target="float64"), eager=(), compiled=(seen,)).effect


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(8).as_strided((1,), (2,), 3),
        lambda: torch.arange(6.0).reshape(2, 3).t(),
        lambda: torch.zeros(0, 3, dtype=torch.float16),
        lambda: torch.tensor(1.5, dtype=torch.bfloat16, requires_grad=True),
        lambda: torch.tensor([1 + 2j]).conj(),
        lambda: torch.tensor([True, False]).expand(3, 2),
    ],
)
def test_any_tensor_has_a_digest_that_depends_on_its_values(make: Callable[[], torch.Tensor]) -> None:
    value = make()
    assert effect(value) == effect(make())
    if value.numel():
        other = torch.zeros_like(value, requires_grad=False).as_strided(value.shape, value.stride())
        assert effect(value) != effect(other)


def test_kernels_launches_and_failures_count() -> None:
    value = torch.ones(2)
    failure = Failure(stage=Stage.INDUCTOR, origin="KeyError:f", message="")
    kinds: list[dict[str, object]] = [
        {},
        {"kernels": (("k", "source"),)},
        {"launches": (("k", (1, 1, 1)),)},
        {"failure": failure},
    ]
    assert len({effect(value, **more) for more in kinds}) == len(kinds)
