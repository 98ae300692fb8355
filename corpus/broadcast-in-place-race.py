# /// corpus
# id = "broadcast-in-place-race"
# kind = "gradient"
# stage = "judge"
# origin = "gradient"
# expect = "fail"
# target = "npu"
# backend = "triton_experimental"
# training = true
# found-on = { "torch" = "2.13.0+cpu", "torch_npu" = "2.13.0", "triton-ascend" = "3.2.0", "ascendnpu-ir" = "1.2.0" }
# ///
"""The gradient of a full sum is written in place over the one element that every program of the grid reads: whoever comes later reads the result."""

import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.randn((5, 2), generator=seeded(0))
    return x0,


def program(x0):
    t0 = x0.sum((0, 1))
    t1 = t0 / (t0.abs() + 1)
    return t1


if __name__ == "__main__":
    try:
        import torch_npu

        device = "npu" if torch_npu.npu.is_available() else "cpu"
    except ImportError:
        device = "cuda" if torch.cuda.is_available() else "cpu"

    def on_device(x):  # a copy with the same strides
        memory = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        return memory.to(device, copy=True).as_strided(x.shape, x.stride(), x.storage_offset())

    def results(function):
        arguments = [on_device(x) for x in inputs()]
        torch.manual_seed(20260801)
        leaves = [x.requires_grad_() for x in arguments if x.is_floating_point()]
        outputs = function(*arguments)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        roots = [y for y in outputs if torch.is_tensor(y) and y.requires_grad]
        counts = [torch.arange(y.numel(), device=device).reshape(y.shape) for y in roots]
        weights = [((i * i * 31 + i * 17 + 4) % 11 - 5).to(y.dtype) for i, y in zip(counts, roots)]
        gradients = torch.autograd.grad(roots, leaves, weights, allow_unused=True)
        return outputs, arguments, gradients

    compiled_program = torch.compile(program)
    for call in range(1):
        for name, eager, compiled in zip(("outputs", "arguments", "gradients"), results(program), results(compiled_program)):
            print(f"{name} on {device}, eager: {eager}")
            print(f"{name} on {device}, compiled: {compiled}")
