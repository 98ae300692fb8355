"""A comparison that is folded to the wrong overload."""

from __future__ import annotations

from fuzzer.fixes import Backend, BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="compare_of_difference",
    title="Folding (a - b) == 0 into a == b takes the tensor overload for a number",
    reference="torch_npu commit 9ea941364",
    kind=Kind.CODEGEN_ERROR,
    symptom="aten::eq() Expected a value of type 'Tensor' for argument 'other' but instead found type 'float'",
    summary=(
        "A graph pass, active where no gradients are recorded, replaces a comparison of a difference with zero by a "
        "comparison of its operands. The subtrahend may be a tensor or a number, and the comparison has an overload "
        "for each. The pass took the one for tensors always. The fix looks at the operand."
    ),
    trigger="(x - 3.0) == 0   # under torch.no_grad()",
    edits=(
        Edit(
            module="torch_npu._inductor.fx_passes.ascend_custom_passes.ascend_graph_pass",
            function="fold_iota_arithmetic_pass",
            fixed="new_target = cmp.target",
            defective="new_target = cmp_scalar_to_tensor[cmp.target]",
        ),
    ),
    backend=Backend.DEFAULT,
)
