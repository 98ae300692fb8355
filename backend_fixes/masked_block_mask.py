"""A load inside a branch that only some elements take."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="masked_block_mask",
    title="The mask of a branch is dropped from the loads in it",
    reference="torch_npu commits 1043e2655 and a1c188aaa",
    kind=Kind.MEMORY,
    backend=Backend.DEFAULT,
    symptom="reads before or beyond the input, at the lanes that the branch leaves out",
    summary=(
        "A masked branch loads only where its condition holds, as outside of it the address may lie outside the "
        "input. Such a mask is a variable, unlike the masks of the axes that a kernel may leave out when its "
        "tile is exact. The defective form removed both. The fix keeps the variable when the load's address "
        "depends on every axis of the condition."
    ),
    trigger="torch.slice_scatter(x, y, 1, 5, 12)   # x: float32 [6, 20], y: [6, 7]",
    edits=(
        Edit(
            module="torch_npu._inductor.codegen.triton",
            function="NPUIndexTritonKernel.filter_masks",
            fixed="save_variable_mask = subblock_axis.issubset({str(var) for var in index_vars})",
            defective="save_variable_mask = False",
        ),
    ),
)
