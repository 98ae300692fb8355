"""An in/out argument that arrives empty."""

from __future__ import annotations

from fuzzer.fixes import BackendFix, Edit
from fuzzer.verdict import Kind

FIX = BackendFix(
    slug="downcast_inout",
    title="Narrowing an in/out argument at the launch boundary drops its contents",
    reference="torch_npu issue 3813 (fastNLP_Bert), commit 5ff81d9c5",
    kind=Kind.WRONG_RESULT,
    symptom="a kernel that reads and writes an int64 or float64 buffer in place reads uninitialised memory",
    summary=(
        "Kernels compute int64 as int32: the launch wrapper passes a narrowed copy of each 64-bit argument and writes "
        "outputs back afterwards. For everything that is written it allocated the copy without filling it. That is "
        "right for a pure output, and wrong for an argument that the kernel also reads. The fix copies the contents of "
        "in/out and mutated arguments first."
    ),
    trigger="x.add_(1); return x * 2   # x: int64 [37, 20]",
    edits=(
        Edit(
            module="torch_npu._inductor.triton_experimental.npu_triton_heuristics",
            function="_wrap_launcher_with_downcast",
            fixed="preserve_input = is_in_out or is_mutated",
            defective="preserve_input = False",
        ),
    ),
)
