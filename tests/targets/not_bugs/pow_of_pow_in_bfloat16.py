"""Pow of pow of norms and variances in bfloat16: rounding is amplified (pytorch#163449)."""

import torch


def inputs():
    return (torch.randn(16, 33, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16),)


def program(x):
    a, b = torch.linalg.vector_norm(x, dim=1), x.var(1)
    return torch.pow(torch.pow(a, b), a)
