"""A power of doubles."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="power_float64",
    title="A power of doubles gets a kernel, although the device's Triton takes no double",
    reference="torch_npu commit a4bbd71ad",
    kind=Kind.COMPILE_ERROR,
    backend=Backend.DEFAULT,
    symptom="ValueError: [fp8, fp64] is unsupported on Ascend for now",
    summary=(
        "The device's Triton refuses float64, already where it is loaded. The fix sends powers of doubles to the "
        "operator library, as it does powers of integers."
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
