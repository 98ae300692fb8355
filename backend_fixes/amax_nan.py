"""The largest of values one of which is NaN."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="amax_nan",
    title="A maximum over an axis does not propagate NaN in the default backend",
    reference="torch_npu commit 5367c20eb",
    kind=Kind.WRONG_RESULT,
    backend=Backend.DEFAULT,
    symptom="amax returns a number where an element is NaN",
    summary=(
        "PyTorch's amax returns NaN if any element is NaN. Triton's tl.max does so only when asked, and ignores "
        "NaN otherwise. The fix asks."
    ),
    trigger="x.amax(1)   # x: float32 [37, 300], with NaN in some rows",
    edits=(
        Edit(
            module="torch_npu._inductor.codegen.triton",
            function="NPUIndexTritonKernel.reduction.final_reduction",
            fixed='f"{module}.{reduction_type}({value}, {dim}, propagate_nan=True)"',
            defective='f"{module}.{reduction_type}({value}, {dim})"',
        ),
    ),
)
