"""What the generic kernel must know about an operator, read once from its schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

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
