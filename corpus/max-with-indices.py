# /// corpus
# id = "max-with-indices"
# kind = "compile-error"
# stage = "hivm"
# origin = "bishengir-compile: SIGABRT: mapCompareModeHFusionToHiVM unsupported"
# expect = "fail"
# target = "npu"
# backend = "triton_experimental"
# found-on = { "torch" = "2.13.0+cpu", "torch_npu" = "2.13.0", "triton-ascend" = "3.2.0", "ascendnpu-ir" = "1.2.0" }
# ///
"""max along a dim with its indices does not compile: bishengir-compile aborts on a comparison of its own that it cannot lower."""

import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.randn((2, 2), generator=seeded(0))
    return x0,


def program(x0):
    t0 = torch.max(x0, 0).values
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
        return function(*arguments), arguments

    compiled_program = torch.compile(program)
    for call in range(1):
        for name, eager, compiled in zip(("outputs", "arguments"), results(program), results(compiled_program)):
            print(f"{name} on {device}, eager: {eager}")
            print(f"{name} on {device}, compiled: {compiled}")
