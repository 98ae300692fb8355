"""Every operator that programs are made of, by family and by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fuzzer.ops import (
    creation,
    graph_breaks,
    in_place,
    indexing,
    masking,
    permutes,
    pieces,
    pointwise,
    reductions,
    scans,
    scatters,
    unary,
)
from fuzzer.ops.spec import Family, IllTyped, OpSpec, Params, Registry, Source, Trait, by_name
from fuzzer.template import Template

OPS: Registry = (
    *unary.OPS,
    *pointwise.OPS,
    *in_place.OPS,
    *reductions.OPS,
    *scans.OPS,
    *permutes.OPS,
    *pieces.OPS,
    *indexing.OPS,
    *scatters.OPS,
    *masking.OPS,
    *creation.OPS,
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
