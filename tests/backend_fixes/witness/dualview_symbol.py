"""One buffer, reduced over its flat axis, with an operand that sees that axis split in two."""

import torch


def inputs():
    x = torch.randn(33, 70, generator=torch.Generator().manual_seed(1))
    p = torch.randn(7, 1, generator=torch.Generator().manual_seed(2))
    return x, p


def program(x, p):
    y = (x.reshape(33, 7, 10) + p).reshape(33, 70)
    return (y * x).sum(1)
