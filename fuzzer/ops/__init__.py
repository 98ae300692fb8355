"""Every operator that programs are made of, by family and by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fuzzer.ops import graph_breaks, indexing, masking, permutes, pointwise, reductions
from fuzzer.ops.spec import Family, IllTyped, OpSpec, Params, Registry, Source, Trait, by_name
from fuzzer.template import Template

OPS: Registry = (
    *pointwise.OPS,
    *reductions.OPS,
    *permutes.OPS,
    *indexing.OPS,
    *masking.OPS,
    *graph_breaks.OPS,
)
BY_NAME: Mapping[str, OpSpec] = by_name(OPS)
FAMILIES: Mapping[Family, Registry] = {
    family: tuple(spec for spec in OPS if spec.family is family) for family in Family
}


@cache
def template_of(op: str) -> Template:
    """The compiled template of an operator."""
    spec = BY_NAME[op]
    return Template(spec.template, tuple(slot.name for slot in spec.slots))


__all__ = [
    "BY_NAME",
    "FAMILIES",
    "OPS",
    "Family",
    "IllTyped",
    "OpSpec",
    "Params",
    "Registry",
    "Source",
    "Trait",
    "template_of",
]
