"""Compiles hand-written Triton kernels with the real tools and runs them on CPU tensors, without torch_npu."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from triton.compiler.compiler import ASTSource

from fuzzer.simnpu import toolchain
from fuzzer.simnpu.driver import HostKernel, KernelCompiler, run_kernels
from fuzzer.simnpu.language import install_language
from fuzzer.simnpu.options import Executor, SimOptions


@cache
def compiler(fit_check: bool = False) -> KernelCompiler:
    """A compiler ready to use; the fit check is left out where a test is not about it, because it is slow."""
    install_language()
    made = KernelCompiler(SimOptions(fit_check=fit_check))
    toolchain.adopt_tools(made.tools, made.options.soc)
    return made


def compile_on_host(
    kernel: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any] | None = None,
    *,
    executor: Executor = Executor.NATIVE,
    fit_check: bool = False,
) -> HostKernel:
    """Compile one `@triton.jit` function for the given types of its run-time arguments."""
    ready = compiler(fit_check)
    source = ASTSource(kernel, dict(signature), dict(constants or {}), None)
    run_kernels(executor=executor)
    try:
        return ready(source)
    finally:
        run_kernels(executor=Executor.NATIVE)
