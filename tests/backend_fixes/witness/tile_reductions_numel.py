"""Two dims that are reduced as two axes of a tile."""

import torch

MODE = {"config": {"triton.tile_reductions": True, "triton.prefer_nd_tiling": True}}


def inputs():
    x = torch.randn(4, 6, 10, generator=torch.Generator().manual_seed(1))
    return (x,)


def program(x):
    return torch.var_mean(x.permute(0, 2, 1), (0, 1))
