"""An address that divides by a size."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="masked_clamp_zero",
    title="The check for negative offsets divides by a size that it sets to zero",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.CODEGEN_ERROR,
    symptom="ZeroDivisionError: integer division or modulo by zero",
    summary=(
        "A load under a mask may have a negative offset where the mask is off, which the device refuses, so such "
        "offsets are clamped. Whether one is needed is found by setting every symbol of the address to zero. With "
        "dynamic shapes some of them are sizes, and an address that divides by one fails. The fix catches that "
        "failure and does not clamp."
    ),
    trigger="torch.slice_scatter(x, (a[:, None] * b).reshape(-1), 0, 2, 23)   # x: [48], a: [3], b: [7], dynamic",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="_masked_index_needs_nonnegative_clamp",
            fixed="(AttributeError, TypeError, ValueError, ZeroDivisionError)",
            defective="(AttributeError, TypeError, ValueError)",
        ),
    ),
)
