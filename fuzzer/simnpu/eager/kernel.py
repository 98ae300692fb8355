"""The generic kernel: torch's CPU kernel on aliases of device tensors, its results put on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fuzzer.simnpu.eager.aliasing import alias, to_device
from fuzzer.simnpu.eager.draws import current_device, generator_for, seeded_default
from fuzzer.simnpu.eager.plan import Kernel, Plan


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
            call.device = torch.device("npu", current_device())
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
    index = current_device() if wanted.index is None else wanted.index
    call.device = torch.device("npu", index)
    return torch.device("cpu")
