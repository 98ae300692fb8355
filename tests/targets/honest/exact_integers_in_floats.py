"""Sums and products of small integers in float32: one right result, to the bit."""

import torch


def inputs():
    seeded = torch.Generator().manual_seed
    return (
        torch.randint(-3, 4, (64, 33), generator=seeded(0)).to(torch.float32),
        torch.randint(0, 64, (20,), generator=seeded(1)),
    )


def program(x, index):
    x.add_(1)
    y = (x * x)[index].masked_fill(x[:20] > 2, 0)
    v = y.sum().item()
    return y.sum(0), y.t().contiguous(), v * 2 if v > 0 else 0.0, x.view(-1)[3:]
