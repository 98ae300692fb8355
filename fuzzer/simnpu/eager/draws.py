"""Random numbers of the simulated device: drawn on the CPU from the seed and offset of the device's own generator."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_STEP = 4
"""How far a draw moves the device generator's offset; torch_npu asks for a multiple of four."""


def _npu() -> Any:
    return importlib.import_module("torch_npu.npu")


def current_device() -> int:
    """Index of the device that operators without a device argument use."""
    index: int = _npu().current_device()
    return index


def _advance(device_generator: torch.Generator) -> int:
    """A seed for one draw: a function of the state of the device generator, which moves on.

    The first draw after `torch.manual_seed` gets the seed itself, and so gives what the CPU would give.
    """
    seed, offset = device_generator.initial_seed(), device_generator.get_offset()
    device_generator.set_offset(offset + _STEP)
    if offset == 0:
        return seed
    mixed = (seed * 0x9E3779B97F4A7C15 + offset * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    return mixed ^ (mixed >> 31)


def _device_generator(device: torch.device) -> torch.Generator:
    npu = _npu()
    npu._lazy_init()
    generator: torch.Generator = npu.default_generators[device.index or 0]
    return generator


def seed_for(device: torch.device) -> int:
    """A seed of 64 bits for one draw from the default generator of `device`, which moves on."""
    return _advance(_device_generator(device))


def generator_for(given: torch.Generator | None, device: torch.device) -> torch.Generator:
    """A CPU generator for one draw on `device`, from the generator that the caller gave or the device's own."""
    if given is not None and given.device.type == "cpu":
        raise RuntimeError(f"Expected a '{device.type}' device type for generator but found 'cpu'")
    source = given if given is not None else _device_generator(device)
    return torch.Generator().manual_seed(_advance(source))


@contextmanager
def seeded_default(device: torch.device) -> Iterator[None]:
    """Inside, the CPU's default generator stands for the device's; afterwards it is as it was."""
    default = torch.default_generator
    state = default.get_state()
    default.manual_seed(seed_for(device))
    try:
        yield
    finally:
        default.set_state(state)
