"""pytorch#193661: argmax of a trailing-dim reduction of a permuted tensor gives a physical, not the logical index."""

import torch


def inputs():
    return (torch.randn(4, 4, 3, generator=torch.Generator().manual_seed(0)).permute(1, 0, 2),)


def program(x):
    return x.mean(-1).argmax()
