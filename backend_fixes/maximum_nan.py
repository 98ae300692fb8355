"""A maximum that loses NaN."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

_MODULE = "torch_npu._inductor.triton_experimental.codegen.triton"

FIX = BackendFix(
    slug="maximum_nan",
    title="maximum and minimum do not propagate NaN",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.WRONG_RESULT,
    symptom="torch.maximum, clamp and relu return a number where an operand is NaN",
    summary=(
        "PyTorch's maximum and minimum return NaN if either operand is NaN. Triton's do so only when asked, and return "
        "the other operand otherwise. The fix asks."
    ),
    trigger="torch.maximum(x, y), x.relu()   # with NaN in x",
    edits=(
        Edit(
            module=_MODULE,
            function="NPUTritonKernelOverrides.minimum",
            fixed='f"tl.minimum({a}, {b}, tl.PropagateNan.ALL)"',
            defective='f"tl.minimum({a}, {b})"',
        ),
        Edit(
            module=_MODULE,
            function="NPUTritonKernelOverrides.maximum",
            fixed='f"tl.maximum({a}, {b}, tl.PropagateNan.ALL)"',
            defective='f"tl.maximum({a}, {b})"',
        ),
    ),
)
