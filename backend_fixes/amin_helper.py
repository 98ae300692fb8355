"""A helper that calls a function with an argument it does not take."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="amin_helper",
    title="The helper for amin asks tl.min to propagate NaN, which it cannot",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.COMPILE_ERROR,
    symptom="no configuration of a kernel with amin compiles",
    summary=(
        "triton-ascend's tl.max takes propagate_nan, its tl.min does not. The helper of amin was written like that of "
        "amax. The fix reduces with a combine function that propagates NaN."
    ),
    trigger="x.amin(-1)   # x: float32 [6, 8]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.npu_triton_helpers",
            function="min2",
            fixed="tl.reduce(a, dim, _min_prop_nan)",
            defective="tl.min(a, dim, propagate_nan=True)",
        ),
    ),
)
