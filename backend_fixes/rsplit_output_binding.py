"""A split sum beside another live output."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="rsplit_output_binding",
    title="A split reduction takes the first output of its kernel for the result of the reduction",
    reference="torch_npu issue 3813 (hf_Bert), commit 95c9094da",
    kind=Kind.MEMORY,
    symptom="memory beside the workspace is overwritten, the sum is wrong; a training run turns NaN",
    summary=(
        "A sum over a long outer axis is split over the cores: each writes a partial row into a small workspace, and a "
        "second kernel combines the rows. The rewrite must know which output pointer the sum is stored to. It took the "
        "first live output. With a pointwise output fused into the same kernel that is the pointwise one, whose large "
        "store then goes into the workspace. The fix refuses the split unless exactly one output is live."
    ),
    trigger="z = x * y; return z, z.sum(0)   # x, y: float32 [8192, 64]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="_npu_rsplit_out_binding",
            fixed="len(bindings) != 1",
            defective="not bindings",
        ),
    ),
)
