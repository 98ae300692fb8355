"""One axis that two views cut at different places."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="alternate_span",
    title="An alternate decomposition of a part of an axis stays a tile axis of its own",
    reference="torch_npu (BigBird), between the first public version and 2.13.0",
    kind=Kind.WRONG_RESULT,
    symptom="wrong values; the tile axes together have more elements than there are",
    summary=(
        "Views of one iteration space give it different digits. Digits that say again what the chosen ones say "
        "must be computed from those, or the kernel iterates over both. The first version did so only if the "
        "alternate digits cover the whole space. The fix also does so for digits that span a part of it."
    ),
    trigger="a = x - x.sum(0, keepdim=True); (a + y).reshape(7, 6), a * 2   # x: float32 [7, 3, 2], y: [2]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="NPUTritonScheduling._fold_redundant_range_tree_decomposition",
            fixed="if not redundant_names:\n    return",
            defective="if not _complete_chain(other_chain):\n    return",
        ),
    ),
)
