# /// corpus
# id = "split-broadcast-gradient-undefined-numel"
# kind = "compile-error"
# stage = "frontend"
# origin = "NameError: name_lookup"
# expect = "fail"
# target = "npu"
# backend = "triton_experimental"
# training = true
# found-on = { "torch" = "2.13.0+cpu", "torch_npu" = "2.13.0", "triton-ascend" = "3.2.0", "ascendnpu-ir" = "1.2.0" }
# ///
"""The gradient of a broadcast operand, a sum over two axes and 2,048 elements, is split over a length that nothing defines."""

import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.randn((2, 1), generator=seeded(0))
    x1 = torch.randn((1024, 2, 2), generator=seeded(1))
    return x0, x1


def program(x0, x1):
    t0 = x1 - x0
    return t0


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
