"""Two views of one reduced axis, cut at different places."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="promoted_alias",
    title="An index of a second view of the reduced axis is used in a loop that does not define it",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.COMPILE_ERROR,
    symptom="NameError in the generated kernel, at the address of a load",
    summary=(
        "If two views cut a reduced axis at different places, the tile follows one of them, and the indices of the "
        "other are computed from it. That was done by editing text, and went wrong where the reduction's loop is "
        "written anew, one loop for each part of the axis. The fix keeps a plan of these indices and writes it into "
        "every such loop. This edit leaves it out of the loops over the parts."
    ),
    trigger="v = x.reshape(4, 2, 32, 2, 8); (v + (x - x.sum()).reshape(v.shape)).mean((0, 2, 4))   # x: [64, 64]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="_npu_apply_promoted_rtree_lines",
            fixed=(
                "new_lines.extend(render_reduction_index_aliases(reduction_pass, kernel.index_to_str, inner_indent))"
            ),
            defective="",
        ),
    ),
)
