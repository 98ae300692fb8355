"""Which findings are the same defect: by signature while shrinking, by signature and structure once small."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fuzzer.program import DType, InputSpec, Program
from fuzzer.verdict import Signature

_SLUG_OPS = 5
"""How many operator names a slug spells out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The class of findings that one minimized program stands for."""

    slug: str
    """For people: the kind and the operators in def-use order, such as `wrong-result-index-masked_fill-sum`."""
    id: str
    """For machines: the slug and a digest of signature and structure; equal exactly for findings of one bucket."""


def same(one: Signature, other: Signature) -> bool:
    """Whether two failures count as one defect while a program shrinks: same kind, same stage, same origin."""
    return (one.kind, one.stage, one.origin) == (other.kind, other.stage, other.origin)


def bucket(program: Program, signature: Signature) -> Bucket:
    """The bucket of a minimized finding.

    It knows operators, how values flow between them, the class of each input's dtype, and the modes that were needed;
    not shapes, ranks, names, parameters, values, or the order of statements and outputs.
    """
    digests = _digests(program)
    structure = sorted(digests[name] for name in _roots(program, digests))
    mode = program.mode
    modes = [name for name, needed in (("training", mode.training), ("dynamic", mode.dynamic)) if needed]
    config = [name for name, _ in mode.config]
    whole = _digest(str(signature.kind), str(signature.stage), signature.origin, *modes, *config, *structure)
    slug = "-".join([str(signature.kind), *operators(program)[:_SLUG_OPS]])
    return Bucket(slug=slug, id=f"{slug}-{whole[:8]}")


def bucket_of_signature(signature: Signature) -> Bucket:
    """The bucket of programs of which nothing but the failure is known."""
    slug = f"{signature.kind}-program"
    return Bucket(slug=slug, id=f"{slug}-{_digest(str(signature.kind), str(signature.stage), signature.origin)[:8]}")


def operators(program: Program) -> tuple[str, ...]:
    """Operator names, each once, operands before users; the same for every order of statements and outputs."""
    digests = _digests(program)
    nodes = {node.name: node for node in program.nodes}
    names: dict[str, None] = {}
    seen: set[str] = set()
    stack = [(name, False) for name in sorted(_roots(program, digests), key=digests.__getitem__, reverse=True)]
    while stack:
        name, operands_done = stack.pop()
        if name not in nodes or (name in seen and not operands_done):
            continue
        seen.add(name)
        if operands_done:
            names[_plain(nodes[name].op)] = None
        else:
            stack.append((name, True))
            stack.extend((arg, False) for arg in reversed(nodes[name].args))
    return tuple(names)


def _digests(program: Program) -> Mapping[str, str]:
    """For every name a digest of the expression that it stands for."""
    digests = {spec.name: _input_digest(spec) for spec in program.inputs}
    for node in program.nodes:
        digests[node.name] = _digest(_plain(node.op), *(digests[name] for name in node.args))
    return digests


def _plain(op: str) -> str:
    """An operator's name without the dims that it works on: `index` for `index_0` and `index_12`."""
    return op.rstrip("0123456789").rstrip("_") if op[-1].isdigit() else op


def _input_digest(spec: InputSpec) -> str:
    dtype = spec.type.dtype
    return "float" if dtype.is_floating else "bool" if dtype is DType.BOOL else "int"


def _roots(program: Program, digests: Mapping[str, str]) -> Iterable[str]:
    """One name for each distinct expression that is returned, or that nothing uses (it acts in place)."""
    used = {name for node in program.nodes for name in node.args}
    sinks = (node.name for node in program.nodes if node.name not in used)
    return {digests[name]: name for name in (*program.outputs, *sinks)}.values()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
