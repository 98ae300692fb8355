"""The order of a program's runs on one platform: eager, float64, compiled, and only if asked the perturbed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import torch

from fuzzer.observation import Observation, Observations
from fuzzer.program import Case, Mode
from fuzzer.targets.harness import Breadcrumb, Clock, Function, Loaded, copy_inputs, load, run_once
from fuzzer.targets.perturbed import perturbed_runs
from fuzzer.targets.reference import run_reference
from fuzzer.targets.stack import private_caches
from fuzzer.verdict import Stage

Settled: TypeAlias = Callable[[Observations], bool]
"""Whether more eager runs could no longer change the conclusion."""

Run: TypeAlias = Callable[..., Observations]


def never_settled(observations: Observations) -> bool:
    """Always asks for the perturbed runs."""
    return False


class Watch(Protocol):
    """What a platform tells of the kernels that one compiled run made; a simulator can, a device cannot."""

    @property
    def kernels(self) -> Sequence[tuple[str, str]]:
        """Name and source of each."""

    @property
    def launches(self) -> Sequence[tuple[str, tuple[int, ...]]]:
        """Kernel and grid of each launch."""

    @property
    def seconds(self) -> Sequence[tuple[str, float]]:
        """Seconds by stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwatched:
    """Nothing is known about kernels."""

    kernels: tuple[tuple[str, str], ...] = ()
    launches: tuple[tuple[str, tuple[int, ...]], ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()


Watcher: TypeAlias = Callable[[Breadcrumb], AbstractContextManager[Watch]]


def unwatched(breadcrumb: Breadcrumb) -> AbstractContextManager[Watch]:
    """The watcher of a platform that tells nothing."""
    return nullcontext(Unwatched())


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs cases on one device. Calling it gives the observations of one case."""

    name: str
    """Of the platform; begins the target names."""
    device: str
    watcher: Watcher = unwatched

    def __call__(self, case: Case, breadcrumb: Breadcrumb, settled: Settled = never_settled) -> Observations:
        """Runs one case everywhere. Raises FuzzerError when its text is not a program.

        `settled` decides whether eager on the device and the perturbed runs are needed, asked before each batch of
        them; without it they all run.
        """
        clock = Clock()
        loaded = load(case)
        training = case.mode.training
        with clock.measure("eager"):
            eager = self._eager(loaded, "cpu", "eager", training, breadcrumb)
        with clock.measure("reference"):
            reference, exact = run_reference(loaded, training, breadcrumb)
        compiled = self._compiled(loaded, case.mode, breadcrumb, clock)
        seen = Observations(reference=reference, eager=(eager,), compiled=compiled, exact=exact)
        batches = self._more(loaded, seen, training, breadcrumb)
        while not settled(seen):
            with clock.measure("eager"):
                batch = next(batches, None)
            if batch is None:
                break
            seen = replace(seen, eager=(*seen.eager, *batch))
        return replace(seen, reference=replace(reference, seconds=clock.items()))

    def _more(
        self, loaded: Loaded, seen: Observations, training: bool, breadcrumb: Breadcrumb
    ) -> Iterator[tuple[Observation, ...]]:
        """Batches of further eager runs: on the device, then perturbed ones if there are values to explain."""
        if self.device != "cpu":
            yield (self._eager(loaded, self.device, f"eager on {self.device}", training, breadcrumb),)
        if all(run.failure is None for run in (seen.eager[0], *seen.compiled)):
            yield from perturbed_runs(loaded, training, breadcrumb, exact=seen.exact)

    def _eager(self, loaded: Loaded, device: str, target: str, training: bool, breadcrumb: Breadcrumb) -> Observation:
        return run_once(
            loaded.function,
            copy_inputs(loaded.inputs, device, training=training),
            loaded.names,
            target=target,
            stage=Stage.EAGER,
            training=training,
            breadcrumb=breadcrumb,
        )

    def _compiled(self, loaded: Loaded, mode: Mode, breadcrumb: Breadcrumb, clock: Clock) -> tuple[Observation, ...]:
        function = compiled_function(loaded.function, mode)
        observations: list[Observation] = []
        with private_caches(), self.watcher(breadcrumb) as watch, clock.measure("compiled"):
            for call in range(max(mode.calls, 1)):
                target = f"compiled on {self.name}" + (f", call {call + 1}" if call else "")
                seen = run_once(
                    function,
                    copy_inputs(loaded.inputs, self.device, training=mode.training),
                    loaded.names,
                    target=target,
                    stage=Stage.INDUCTOR,
                    training=mode.training,
                    breadcrumb=breadcrumb,
                )
                observations.append(seen)
                if seen.failure is not None:
                    break
        by_stage = dict(watch.seconds)
        total = clock.seconds.pop("compiled")
        clock.seconds["inductor"] = max(total - sum(by_stage.values()), 0.0)
        clock.seconds.update(by_stage)
        kernels, launches = tuple(watch.kernels), tuple(watch.launches)
        return tuple(replace(seen, kernels=kernels, launches=launches) for seen in observations)


def compiled_function(function: Function, mode: Mode) -> Function:
    """`torch.compile` of a function as the mode says. Forgets what was compiled before."""
    torch._dynamo.reset()
    options: dict[str, Any] = dict(mode.config)
    compiled: Function = torch.compile(
        function, backend="inductor", dynamic=True if mode.dynamic else None, options=options or None
    )
    return compiled
