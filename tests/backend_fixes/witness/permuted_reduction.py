"""The weight gradient of an RMS norm: three axes are reduced, one of them permuted."""

import torch

MODE = {"backend": "default"}


def inputs():
    g = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(1))
    q = torch.randn(2, 4, 3, 8, generator=torch.Generator().manual_seed(2))
    scale = torch.randn(2, 4, 3, 1, generator=torch.Generator().manual_seed(3))
    return g, q, scale


def program(g, q, scale):
    return (g.permute(0, 2, 1, 3) * q * scale).sum((0, 1, 2))
