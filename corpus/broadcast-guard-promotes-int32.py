# /// corpus
# id = "broadcast-guard-promotes-int32"
# kind = "compile-error"
# stage = "frontend"
# origin = "AssertionError: _verify_loop_carried_variable"
# expect = "fail"
# target = "npu"
# backend = "triton_experimental"
# found-on = { "torch" = "2.13.0+cpu", "torch_npu" = "2.13.0", "triton-ascend" = "3.2.0", "ascendnpu-ir" = "1.2.0" }
# ///
"""The guard of a broadcast operand of int32 selects against the literal 0.0, so the accumulator changes its dtype inside the loop and the frontend refuses the kernel."""

import torch


def inputs():
    seeded = torch.Generator().manual_seed
    x0 = torch.arange(250).reshape((250,))
    x1 = torch.randint(-4, 5, (14, 1), generator=seeded(1)).expand(14, 6)
    index2 = torch.randint(0, 1, (2, 14, 6), generator=seeded(2))
    return x0, x1, index2


def program(x0, x1, index2):
    t0 = x0[..., 0::3]
    t1 = index2 + x1
    t2 = t1.reshape(2, 84)
    t3 = t2 * t0
    t4 = t3.amax(1)
    return t4


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
