"""pytorch#185382: in-place ternary operations go wrong from the third step of a loop whose body calls `.item()`."""

import torch


def inputs():
    return (
        torch.randn(8, generator=torch.Generator().manual_seed(0)),
        torch.randn(8, generator=torch.Generator().manual_seed(1)),
    )


def adam_step(param, grad, mean, square, count):
    count.add_(1)
    mean.mul_(0.9).add_(grad, alpha=0.1)
    square.mul_(0.999).addcmul_(grad, grad, value=0.001)
    step = count.item()
    denominator = (square.sqrt() / (1 - 0.999**step) ** 0.5).add_(1e-8)
    param.addcdiv_(mean, denominator, value=-0.001 / (1 - 0.9**step))


def program(param, grad):
    param = param.clone()
    mean = torch.zeros_like(param)
    square = torch.zeros_like(param)
    count = torch.zeros((), device=param.device)
    for _ in range(5):
        adam_step(param, grad, mean, square, count)
    return param
