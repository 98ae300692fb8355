"""A launch that leaves rows out."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="exact_grid",
    title="Kernels that are not linearized are launched with as many programs as there are cores",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.WRONG_RESULT,
    symptom="rows beyond the last core's tile are uninitialised; with few tiles, reads beyond the input (507035)",
    summary=(
        "A linearized kernel divides its tiles among the programs itself, so one program per core is the right grid. "
        "A kernel made with codegen_linearize off computes one tile per program, and needs exactly as many programs as "
        "tiles. The fix launches that many. The edit also turns the gate off, as the defect shows only there."
    ),
    trigger="x.sum(-1)   # x: float32 [64, 128, 256]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.npu_triton_heuristics",
            function="NPUTritonCompileResult.make_launcher",
            fixed=(
                'not self.inductor_meta.get("npu_linearize", True) and grid_type == "Grid1D" and "xnumel" in def_args'
            ),
            defective="False",
        ),
        Edit(
            module="torch_npu._inductor.triton_experimental.config",
            fixed="codegen_linearize: bool = True",
            defective="codegen_linearize: bool = False",
        ),
    ),
)
