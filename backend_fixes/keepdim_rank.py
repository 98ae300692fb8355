"""A reduction with nothing left to iterate over."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="keepdim_rank",
    title="A kernel whose output axis has no free node counts one dimension too few",
    reference="torch_npu issue 3883, commit 22fb7f528",
    kind=Kind.COMPILE_ERROR,
    symptom="Cannot broadcast, rank mismatch: [1], [1, 1]",
    summary=(
        "The rank of a tile is the number of free nodes of its range trees. The tree of the output axis of a full "
        "reduction has none left, yet still holds a slot. Counted as zero, the value has rank 1 and the address it is "
        "stored to has rank 2. The fix counts one slot."
    ),
    trigger="x.amax()   # x: float32 [30, 20]; any full reduction",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="NPUTritonKernel.triton_tensor_ndim",
            fixed="ndim += count if count else 1",
            defective="ndim += count",
        ),
    ),
)
