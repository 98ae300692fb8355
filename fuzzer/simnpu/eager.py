"""Eager operators: every `aten` operator that torch_npu registers runs torch's own CPU kernel on the device memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fuzzer.simnpu import eager_backward, eager_npu, eager_special
from fuzzer.simnpu.aliasing import alias, to_device
from fuzzer.simnpu.eager_random import generator_for, seeded_default

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
        "empty_strided",
        "is_pinned",
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

MIXED_DEVICES = frozenset(
    {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}
)
"""Operators that torch lets take CPU tensors with dimensions (indices) beside device tensors."""

Kernel = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a wrapper must know about an operator, read once from its schema."""

    name: str
    call: Kernel
    tensors: tuple[int, ...]
    """Positions of tensor arguments."""
    lists: tuple[int, ...]
    """Positions of arguments that are lists of tensors."""
    devices: tuple[int, ...]
    """Positions of device arguments."""
    tensor_keywords: frozenset[str]
    list_keywords: frozenset[str]
    written: tuple[int | str, ...]
    """The argument that each result is, for in-place and out= operators; empty when results are fresh."""
    resizes: bool
    """Has out= arguments, which torch resizes to the result."""
    may_alias: bool
    """A result can be, or view, an argument."""
    generator: bool
    seeded: bool
    """Draws from the default generator without taking one as an argument."""
    mixes: bool


def _is_tensor_list(kind: str) -> bool:
    return kind in ("List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]")


def plan_of(op: Any) -> Plan:
    """Reads the plan of one operator overload from its schema."""
    schema = op._schema
    tensors: list[int] = []
    lists: list[int] = []
    devices: list[int] = []
    tensor_keywords: set[str] = set()
    list_keywords: set[str] = set()
    writers: dict[frozenset[str], int | str] = {}
    generator = resizes = views = False
    for position, argument in enumerate(schema.arguments):
        kind = str(argument.type)
        place: int | str = argument.name if argument.kwarg_only else position
        if kind in ("Tensor", "Optional[Tensor]"):
            if argument.kwarg_only:
                tensor_keywords.add(argument.name)
            else:
                tensors.append(position)
        elif _is_tensor_list(kind):
            if argument.kwarg_only:
                list_keywords.add(argument.name)
            else:
                lists.append(position)
        elif kind == "Optional[Device]" and not argument.kwarg_only:
            devices.append(position)
        elif kind == "Optional[Generator]":
            generator = True
        info = argument.alias_info
        if info is not None:
            if info.is_write:
                writers[frozenset(info.before_set)] = place
                resizes = resizes or argument.is_out
            else:
                views = True
    written = tuple(
        writers[frozenset(result.alias_info.before_set)]
        for result in schema.returns
        if result.alias_info is not None and frozenset(result.alias_info.before_set) in writers
    )
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
    seeded = torch.Tag.nondeterministic_seeded in op.tags
    return Plan(
        name=schema.name.removeprefix("aten::"),
        call=op,
        tensors=tuple(tensors),
        lists=tuple(lists),
        devices=tuple(devices),
        tensor_keywords=frozenset(tensor_keywords),
        list_keywords=frozenset(list_keywords),
        written=written,
        resizes=resizes,
        may_alias=views or (composite and not writers),
        generator=generator,
        seeded=seeded and not generator,
        mixes=schema.name.removeprefix("aten::") in MIXED_DEVICES,
    )


class _Call:
    """One call being prepared: the device it runs on and the device tensors that stand behind CPU aliases."""

    __slots__ = ("aliases", "device", "foreign", "originals")

    def __init__(self) -> None:
        self.device: torch.device | None = None
        self.originals: list[torch.Tensor] = []
        self.aliases: list[torch.Tensor] = []
        self.foreign: torch.device | None = None

    def take(self, tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor  # a number: the dispatcher unwraps it from its zero-dimensional tensor
        device = tensor.device
        if device.type != "npu":
            if tensor.dim():
                self.foreign = device
            return tensor
        seen = alias(tensor)
        if self.device is None:
            self.device = device
        elif device != self.device:
            self.foreign = device
        self.originals.append(tensor)
        self.aliases.append(seen)
        return seen

    def take_list(self, tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        return [None if tensor is None else self.take(tensor) for tensor in tensors]

    def give(self, result: Any, may_alias: bool) -> Any:
        """The device value of one result of the CPU kernel."""
        if isinstance(result, torch.Tensor):
            assert self.device is not None
            if may_alias:
                for seen, original in zip(self.aliases, self.originals, strict=True):
                    if result is seen:
                        return original
                address = result.untyped_storage().data_ptr()
                for seen, original in zip(self.aliases, self.originals, strict=True):
                    if address and seen.untyped_storage().data_ptr() == address and seen.dtype == result.dtype:
                        return original.as_strided(result.size(), result.stride(), result.storage_offset())
            return to_device(result, self.device)
        if isinstance(result, (list, tuple)):
            return [self.give(item, may_alias) for item in result]
        return result


def _run_with_out(plan: Plan, call: _Call, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Runs an out= operator, and gives every out tensor the sizes and strides that the kernel gave its alias."""
    outs = [place for place in plan.written if isinstance(place, (int, str))]
    before: list[tuple[int | str, torch.Tensor, torch.Tensor]] = []
    for place in outs:
        value = args[place] if isinstance(place, int) else kwargs[place]
        for seen, original in zip(call.aliases, call.originals, strict=True):
            if seen is value:
                before.append((place, original, seen))
                break
    for place, original, seen in before:
        if seen.numel() == 0:
            fresh = torch.empty_strided(original.size(), original.stride(), dtype=original.dtype)
            if isinstance(place, int):
                args[place] = fresh
            else:
                kwargs[place] = fresh
    try:
        plan.call(*args, **kwargs)
    except RuntimeError as error:
        if "resiz" not in str(error):
            raise
        for place, original, _ in before:
            fresh = torch.empty_strided(original.size(), original.stride(), dtype=original.dtype)
            if isinstance(place, int):
                args[place] = fresh
            else:
                kwargs[place] = fresh
        plan.call(*args, **kwargs)
    for place, original, seen in before:
        value = args[place] if isinstance(place, int) else kwargs[place]
        if value is seen:
            if seen.size() != original.size() or seen.stride() != original.stride():
                original.as_strided_(seen.size(), seen.stride(), seen.storage_offset())
            continue
        if value.size() != original.size():
            original.resize_(value.size())
        if value.stride() != original.stride() and value.numel():
            original.as_strided_(value.size(), value.stride())
        alias(original).copy_(value)


def wrap(plan: Plan) -> Kernel:
    """The kernel that runs `plan.call` on aliases of its device arguments and puts the results on their device."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        call = _Call()
        converted = list(args)
        given = len(converted)
        for position in plan.tensors:
            if position < given and converted[position] is not None:
                converted[position] = call.take(converted[position])
        for position in plan.lists:
            if position < given and converted[position] is not None:
                converted[position] = call.take_list(converted[position])
        if plan.devices:
            for position in plan.devices:
                if position < given:
                    converted[position] = _cpu_for(call, converted[position])
        originals_of_keywords: dict[str, Any] = {}
        target: torch.device | None = None
        for key, value in kwargs.items():
            if value is None:
                continue
            if key in plan.tensor_keywords:
                originals_of_keywords[key] = value
                kwargs[key] = call.take(value)
            elif key in plan.list_keywords:
                originals_of_keywords[key] = value
                kwargs[key] = call.take_list(value)
            elif key == "device":
                target = torch.device(value)
                kwargs[key] = _cpu_for(call, value)
        if call.foreign is not None and not plan.mixes:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{call.device} and {call.foreign}! (when calling {plan.name})"
            )
        if call.device is None:
            call.device = torch.device("npu", torch.npu.current_device())
        if plan.generator:
            kwargs["generator"] = generator_for(kwargs.get("generator"), call.device)
        if plan.resizes:
            _run_with_out(plan, call, converted, kwargs)
        elif plan.seeded:
            with seeded_default(call.device):
                result = plan.call(*converted, **kwargs)
        else:
            result = plan.call(*converted, **kwargs)
        if plan.written:
            given_back = [
                args[place] if isinstance(place, int) else originals_of_keywords[place] for place in plan.written
            ]
            return given_back[0] if len(given_back) == 1 else tuple(given_back)
        if plan.resizes:
            return None
        if target is not None and target.type != "npu":
            return result
        if result.__class__ is tuple:
            return tuple(call.give(item, plan.may_alias) for item in result)
        return call.give(result, plan.may_alias)

    return kernel


def _cpu_for(call: _Call, device: Any) -> Any:
    """CPU in place of a device; remembers the device. Anything else as it is."""
    if device is None:
        return None
    wanted = torch.device(device)
    if wanted.type != "npu":
        return wanted
    index = torch.npu.current_device() if wanted.index is None else wanted.index
    call.device = torch.device("npu", index)
    return torch.device("cpu")


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


_libraries: list[torch.library.Library] = []
"""Kept alive: a Library that goes away takes its registrations with it."""


def _kernel_for(name: str) -> Kernel | None:
    """The host kernel of a dispatcher name, None where torch_npu's own stays."""
    namespace, _, rest = name.partition("::")
    for kernels in (eager_special.KERNELS, eager_backward.KERNELS, eager_npu.KERNELS):
        if name in kernels:
            return kernels[name]
    if rest in (NATIVE if namespace == "aten" else eager_npu.NATIVE):
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
    libraries = {namespace: torch.library.Library(namespace, "IMPL") for namespace in ("aten", "npu")}
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
