"""Two reduction axes in one slot."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="tile_reductions_slot",
    title="Several reduction axes of one kernel share a tensor dimension",
    reference="torch_npu commit e1863287d",
    kind=Kind.COMPILE_ERROR,
    symptom="Cannot make shapes compatible: [1, 4, 1] and [1, 1, 4]",
    summary=(
        "With tile_reductions a kernel has one range tree per reduced dimension, and each needs its own dimension of "
        "the tile. The counter went on only in permuted kernels, so otherwise all trees got the same one. The fix "
        "counts on for every reduction tree."
    ),
    trigger="torch.var_mean(x.permute(0, 2, 1), (0, 1))   # x: float32 [4, 6, 10]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.codegen.triton",
            function="NPUTritonScheduling._apply_linearize",
            fixed="tree.tensor_dim = r_tensor_dim\nr_tensor_dim += 1",
            defective="tree.tensor_dim = r_tensor_dim\nr_tensor_dim += getattr(kernel, '_npu_tile_permuted', False)",
        ),
    ),
    config=(("triton.tile_reductions", True), ("triton.prefer_nd_tiling", True)),
)
