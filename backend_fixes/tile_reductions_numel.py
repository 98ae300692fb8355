"""A reduction of two axes, of which the heuristics know one."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="tile_reductions_numel",
    title="The tiling heuristics know kernels with a single reduction axis only",
    reference="torch_npu commit e1863287d",
    kind=Kind.CODEGEN_ERROR,
    symptom="NotImplementedError: size_hints: {'x': 6, 'r0_': 4, 'r1_': 10}",
    summary=(
        "With tile_reductions the size hints name several reduction axes. The heuristics took the length of the first "
        "one for the length of the reduction, and accepted no kernel with three hints. The fix multiplies the lengths "
        "and accepts two or three."
    ),
    trigger="torch.var_mean(x.permute(0, 2, 1), (0, 1))   # x: float32 [4, 6, 10]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.npu_triton_heuristics",
            function="reduction",
            fixed='rnumel = functools.reduce(operator.mul, (v for k, v in size_hints.items() if k != "x"))',
            defective='rnumel = size_hints["r0_"]',
        ),
        Edit(
            module="torch_npu._inductor.triton_experimental.npu_triton_heuristics",
            function="reduction",
            fixed="len(size_hints) in (2, 3)",
            defective="len(size_hints) == 2",
        ),
    ),
    config=(("triton.tile_reductions", True), ("triton.prefer_nd_tiling", True)),
)
