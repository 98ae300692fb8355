"""Several reduced axes that do not stand beside one another in the tile."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="permuted_reduction",
    title="Axes that are reduced together are flattened in the order of the tile",
    reference="torch_npu commits 6446a3adb, 0c6bdea49 and 92153541c (weight gradient of an RMS norm)",
    kind=Kind.WRONG_RESULT,
    backend=Backend.DEFAULT,
    symptom="values of different outputs are summed together",
    summary=(
        "Several reduced axes are flattened into one before they are reduced. If a kept axis stands between them in "
        "the tile, the flattened rows mix outputs. The fix permutes the tile first, so that the reduced axes come last."
    ),
    trigger="(g.permute(0, 2, 1, 3) * q * inv).sum((0, 1, 2))   # g: float32 [2, 3, 4, 8], q: [2, 4, 3, 8]",
    edits=(
        Edit(
            module="torch_npu._inductor.codegen.triton",
            function="NPUIndexTritonKernel.reduction",
            fixed="need_permute = permute_order != current_order",
            defective="need_permute = False",
        ),
    ),
)
