"""A float64 that is rounded after it was narrowed."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="round_float64",
    title="round of float64 is computed in float32",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.WRONG_RESULT,
    symptom="torch.round is off by one next to a half",
    summary=(
        "Kernels compute float64 as float32. For most operators that costs digits; rounding is discontinuous, and a "
        "value just above a half becomes a half and goes to the other integer. The fix leaves float64 to the eager "
        "operator."
    ),
    trigger="torch.round(x)   # x: float64, 0.5 + 1e-10",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.lowering",
            function="npu_round",
            fixed="x.get_dtype() == torch.float64",
            defective="False",
        ),
    ),
)
