"""Reflection padding, without implicit fallbacks."""

import torch

MODE = {"config": {"implicit_fallbacks": False}}


def inputs():
    x = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    return (x,)


def program(x):
    return torch.nn.functional.pad(x, (1, 2, 2, 1), mode="reflect") * 2
