"""pytorch#93823, mended long ago: masked_fill with a mask that is broadcast along the last dim. Must agree."""

import torch


def inputs():
    return (torch.rand(2, 4, 8, generator=torch.Generator().manual_seed(0)), torch.ones(2, 4, 1, dtype=torch.bool))


def program(x, mask):
    return x.masked_fill(mask, 0)
