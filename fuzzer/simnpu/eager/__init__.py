"""Eager operators: every `aten` operator that torch_npu registers runs torch's own CPU kernel on the device memory."""

from __future__ import annotations

from typing import Any

import torch

from fuzzer.simnpu.eager import copies, gradients, npu_only
from fuzzer.simnpu.eager.kernel import wrap
from fuzzer.simnpu.eager.plan import Kernel, plan_of

KEY = "PrivateUse1"
AUTOGRAD_KEY = "AutogradPrivateUse1"

NATIVE = frozenset(
    {
        "_pin_memory",
        "_reshape_alias",
        "alias",
        "as_strided",
        "as_strided_",
        "detach",
        "empty.memory_format",
        "empty_like",
        "empty_strided",
        "is_pinned",
        "new_empty_strided",
        "record_stream",
        "resize_",
        "resize_as_",
        "set_",
        "set_.source_Storage",
        "set_.source_Storage_storage_offset",
        "set_.source_Tensor",
        "squeeze",
        "squeeze.dim",
        "unfold",
        "unsqueeze",
        "view",
        "view_as_complex",
        "view_as_real",
    }
)
"""Operators that only deal in metadata and storage: torch_npu's own run unchanged."""

COMPOSITE = (
    "aten::fill_diagonal_",
    "aten::gru.input",
    "aten::lstm.data",
    "aten::lstm.input",
    "aten::lstm_cell",
    "aten::max.out",
    "aten::min.out",
    "aten::nanmean.out",
    "aten::one_hot",
)
"""Operators whose torch_npu kernel, registered above autograd, calls the device with no dispatch in between."""


def runs_on_cpu(name: str) -> bool:
    """Whether torch has any kernel that can run the operator on CPU tensors."""
    return any(
        torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
        for key in (
            "CPU",
            "CompositeExplicitAutograd",
            "CompositeExplicitAutogradNonFunctional",
            "CompositeImplicitAutograd",
        )
    )


def overload_named(name: str) -> Any | None:
    """The operator overload of a dispatcher name such as `aten::add.Tensor`, or None if torch does not know it."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    return getattr(packet, overload or "default", None) if packet is not None else None


def refuse(name: str) -> Kernel:
    """A kernel that says that the simulator does not run the operator."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"simnpu: {name} has no host implementation")

    return kernel


_libraries: list[Any] = []
"""Kept alive: a Library that goes away takes its registrations with it."""


def _kernel_for(name: str) -> Kernel | None:
    """The host kernel of a dispatcher name, None where torch_npu's own stays."""
    namespace, _, rest = name.partition("::")
    for kernels in (copies.KERNELS, gradients.KERNELS, npu_only.KERNELS):
        if name in kernels:
            return kernels[name]
    if rest in (NATIVE if namespace == "aten" else npu_only.NATIVE):
        return None
    if namespace == "aten" and runs_on_cpu(name):
        return wrap(plan_of(overload_named(name)))
    return refuse(name)


def composite(name: str) -> Kernel:
    """The kernel that runs torch's own definition of an operator in terms of others."""
    call: Kernel = overload_named(name).decompose  # type: ignore[union-attr]
    return call


def install_eager() -> int:
    """Replaces torch_npu's device kernels; gives the number of operators that were replaced. Idempotent."""
    if _libraries:
        return 0
    library: Any = torch.library.Library  # untyped in torch
    libraries = {namespace: library(namespace, "IMPL") for namespace in ("aten", "npu")}
    replaced = 0
    for name in sorted(torch._C._dispatch_get_registrations_for_dispatch_key(KEY)):
        namespace = name.partition("::")[0]
        # Some names are registered under `aten` by mistake, with no schema there: nothing can call them.
        if namespace not in libraries or overload_named(name) is None:
            continue
        kernel = composite(name) if name in COMPOSITE else _kernel_for(name)
        if kernel is not None:
            libraries[namespace].impl(overload_named(name), kernel, KEY, allow_override=True)
            replaced += 1
    for name in COMPOSITE:
        libraries["aten"].impl(overload_named(name), composite(name), AUTOGRAD_KEY, allow_override=True)
    _libraries.extend(libraries.values())
    return replaced
