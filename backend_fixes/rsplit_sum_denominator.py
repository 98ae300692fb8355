"""A split sum as the denominator."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="rsplit_sum_denominator",
    title="A division by a split full sum is applied to every partial sum",
    reference="torch_npu commit 95c9094da (the rule for division)",
    kind=Kind.WRONG_RESULT,
    symptom="c / x.sum() is the sum of c over each partial sum",
    summary=(
        "The check of what may be fused behind a split sum lets a division through, because dividing each part by the "
        "same number is right. It must also see on which side the sum stands: with the sum below the line, the parts "
        "do not add up. This edit drops that half of the rule."
    ),
    trigger="c / x.sum()   # x: float32 [64, 64], c: float32 [1]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="_npu_rsplit_epilogue_is_homogeneous",
            fixed="len(hot) != 1 or len(args) < 3 or args[1] not in tainted",
            defective="len(hot) != 1 or len(args) < 3",
        ),
    ),
)
