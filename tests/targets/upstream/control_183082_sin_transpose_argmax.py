"""pytorch#183082, mended in torch 2.13: argmax of a transposed tensor after an in-place sin_. Must agree."""

import torch


def inputs():
    return (torch.randn(5, 7, generator=torch.Generator().manual_seed(0)),)


def program(x):
    x = x.clone()
    x.sin_()
    return x.t().argmax()
