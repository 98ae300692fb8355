"""A flat outer product, written into a part of a vector."""

import torch

MODE = {"dynamic": True}


def inputs():
    x = torch.randn(48, generator=torch.Generator().manual_seed(1))
    a = torch.randn(3, generator=torch.Generator().manual_seed(2))
    b = torch.randn(7, generator=torch.Generator().manual_seed(3))
    return x, a, b


def program(x, a, b):
    return torch.slice_scatter(x, (a[:, None] * b).reshape(-1), 0, 2, 23) + 1
