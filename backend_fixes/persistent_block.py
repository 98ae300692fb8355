"""A reduction held in registers whose length is no power of two."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="persistent_block",
    title="The block of a persistent reduction is rounded up, and no mask covers what that adds",
    reference="torch_npu commits 913083da4 and 97ead3efa",
    kind=Kind.MEMORY,
    backend=Backend.DEFAULT,
    symptom="reads beyond the input, or values of the next row in the sum",
    summary=(
        "A persistent reduction holds its whole axis in one block, so its loads carry no mask for that axis. "
        "Rounded up to a power of two, the block reaches into the next row, and beyond the buffer in the last one. "
        "The fix rounds only for kernels that mask."
    ),
    trigger="x.sum(-1)   # x: float32 [37, 300]",
    edits=(
        Edit(
            module="torch_npu._inductor.codegen.triton",
            function="NPUIndexTritonKernel.codegen_static_numels",
            fixed="if self.is_unified_simt_kernel():\n    val = next_power_of_2(val)",
            defective="val = next_power_of_2(val)",
        ),
    ),
)
