"""A difference compared with zero, without gradients, on the default backend."""

import torch

MODE = {"backend": "default", "inference": True}


def inputs():
    return (torch.arange(8.0),)


def program(x):
    return (x - 3.0) == 0, (x - 3.0) > 0
