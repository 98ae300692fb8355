"""Operators that have neither a decomposition nor a lowering."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="strict_fallback",
    title="Operators whose decomposition was removed have no lowering in strict mode",
    reference="torch_npu, between the first public version and 2.13.0",
    kind=Kind.CODEGEN_ERROR,
    symptom="MissingOperatorWithDecomp: aten.reflection_pad2d.default",
    summary=(
        "The backend removes the decompositions of reflection padding and bilinear upsampling, to keep the device's "
        "own kernels. With implicit_fallbacks off nothing then handles these operators. The fix registers fallbacks."
    ),
    trigger='torch.nn.functional.pad(x, (1, 2, 2, 1), mode="reflect") * 2   # with implicit_fallbacks=False',
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.lowering",
            function="_register_npu_inductor_fallbacks",
            fixed="EXPLICIT_FALLBACK_LIST",
            defective="()",
        ),
    ),
    config=(("implicit_fallbacks", False),),
)
