"""An epilogue that is applied to every part of a sum."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="rsplit_epilogue",
    title="What is fused behind a split full sum is applied to every partial sum",
    reference="torch_npu commit 95c9094da",
    kind=Kind.WRONG_RESULT,
    symptom="x.sum() + 1.0 adds the one once per core",
    summary=(
        "A full sum is split over the cores, and pointwise work behind it is fused into the kernel that makes the "
        "partial sums. That is right only for what commutes with addition: a scale, a sign. The fix refuses the split "
        "unless everything behind the sum is of that kind."
    ),
    trigger="x.sum() + 1.0   # x: float32 [64, 64]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="_npu_rsplit_outer_applicable",
            fixed="not _npu_rsplit_epilogue_is_homogeneous(feats)",
            defective="False",
        ),
    ),
)
