# /// corpus
# id = "nested-reduction-strided-layout"
# kind = "compile-error"
# stage = "adapter"
# origin = "triton-adapter-opt: SIGABRT: StridedLayoutAttr::get succeeded verifyInvariants"
# expect = "fail"
# target = "npu"
# backend = "triton_experimental"
# found-on = { "torch" = "2.13.0+cpu", "torch_npu" = "2.13.0", "triton-ascend" = "3.2.0", "ascendnpu-ir" = "1.2.0" }
# ///
"""A reduction over two nested axes of int64, one of them broadcast: triton-adapter-opt aborts on a strided layout that it builds itself."""

import torch


def inputs():
    x0 = torch.arange(3).reshape((3,))
    x1 = torch.arange(9).reshape((3, 3))
    return x0, x1


def program(x0, x1):
    t0 = x1 + x0
    t1 = t0.reshape(9)
    t2 = t1.sum(0)
    return t2


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
