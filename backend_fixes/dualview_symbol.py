"""A fresh sympy symbol that prints like a registered one."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

_MODULE = "torch_npu._inductor.triton_experimental.codegen.triton"

FIX = BackendFix(
    slug="dualview_symbol",
    title="Folding a dual view of a reduction axis builds a symbol that no range tree knows",
    reference="torch_npu issue 3813 (hf_DistilBert), commits 5ff81d9c5 and 95c9094da",
    kind=Kind.CODEGEN_ERROR,
    symptom="AssertionError: Unregistered range symbol: r0_1",
    summary=(
        "A reduction axis that one operand sees flat and another split into two has a flat node and a chain of two "
        "nodes over the same block. An address that mentions the chain only is folded back to the flat node, through a "
        "symbol built from the node's name. The registered symbol is integer and non-negative, the new one is neither: "
        "they print alike but are not equal, and the lookup in the range tree fails. The fix takes the node's own "
        "symbol; a second one maps every stray symbol back by name and hides the first, so both are undone here."
    ),
    trigger="((x.reshape(96, 4, 300) * p).reshape(96, 1200) - x).abs().sum(1)   # x: [96, 1200], p: [300]",
    edits=(
        Edit(
            module=_MODULE,
            function="NPUTritonKernel._fold_dualview_reduction_index",
            fixed="inner.symbol()",
            defective="sympy.Symbol(inner.name)",
        ),
        Edit(
            module=_MODULE,
            function="NPUTritonKernel.prepare_indexing",
            fixed="index = self._canonicalize_range_symbols(index)",
            defective="",
        ),
    ),
)
