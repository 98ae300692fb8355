"""A power of doubles."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="power_float64",
    title="A power of doubles gets a kernel, although the backend's Triton has no function for it",
    reference="torch_npu commit a4bbd71ad",
    kind=Kind.COMPILE_ERROR,
    backend=Backend.DEFAULT,
    symptom="CompilationError in the generated kernel of pow",
    summary=(
        "The backend's Triton has no power of float64. The fix sends powers of doubles to the operator library, "
        "as it does powers of integers."
    ),
    trigger="x**2.5   # x: float64",
    edits=(
        Edit(
            module="torch_npu._inductor.lowering",
            function="_register_npu_inductor_fallbacks.pow",
            fixed="is_fp64_pow = dtype == torch.float64",
            defective="is_fp64_pow = False",
        ),
    ),
)
