"""An int64 input that is changed in place and then read."""

import torch


def inputs():
    x = torch.arange(37 * 20).reshape(37, 20)
    return (x,)


def program(x):
    x.add_(1)
    return x * 2
