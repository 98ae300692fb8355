# /// corpus
# id = "rsplit-output-binding"
# kind = "compile-error"
# stage = "frontend"
# origin = "NameError: name_lookup"
# expect = "pass"
# catches = ["rsplit_output_binding"]
# target = "npu"
# backend = "triton_experimental"
# found-on = { "torch" = "2.13.0+cpu", "torch_npu" = "2.13.0", "triton-ascend" = "3.2.0", "ascendnpu-ir" = "1.2.0" }
# ///
"""A split sum beside a second output takes that output for its own: its workspace is overwritten, and nested axes use a length that nothing defines."""

import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.randn((2048,), generator=seeded(0))
    x1 = torch.randn((128,), generator=seeded(1))
    x2 = torch.randn((16, 128), generator=seeded(2))
    return x0, x1, x2


def program(x0, x1, x2):
    t0 = x2 * x1
    t1 = t0.reshape(2048)
    t2 = t1 * x0
    t3 = t2.sum(0)
    return t0, t3


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
        return function(*arguments), arguments

    compiled_program = torch.compile(program)
    for call in range(1):
        for name, eager, compiled in zip(("outputs", "arguments"), results(program), results(compiled_program)):
            print(f"{name} on {device}, eager: {eager}")
            print(f"{name} on {device}, compiled: {compiled}")
