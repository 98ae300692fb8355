"""One sentence about a minimized finding, for the docstring of its corpus entry."""

from __future__ import annotations

from collections.abc import Mapping

from fuzzer.program import Program
from fuzzer.triage.bucket import Bucket, bucket_of_signature, operators
from fuzzer.verdict import Kind, Signature

_SAYS: Mapping[Kind, str] = {
    Kind.WRONG_RESULT: "compiled result differs from eager",
    Kind.GRADIENT: "compiled gradient differs from eager",
    Kind.MUTATION: "compiled code leaves other values in its inputs than eager",
    Kind.METADATA: "compiled result has another dtype, shape, stride or aliasing than eager",
    Kind.CODEGEN_ERROR: "code generation fails",
    Kind.COMPILE_ERROR: "a generated kernel does not compile",
    Kind.CRASH: "the process dies",
    Kind.HANG: "the program does not end",
    Kind.MEMORY: "a kernel touches memory that is not its own or not written",
    Kind.RACE: "the result depends on the order of kernel programs",
    Kind.CONFIGURATION: "the result depends on the autotune configuration",
    Kind.EXCEPTION: "only one of eager and compiled raises",
}

_SHOWN_OPS = 6
"""How many operators a title names."""


def title(program: Program, signature: Signature) -> str:
    """Say what fails and how: `index, masked_fill and sum of int64: compiled result differs from eager`."""
    what = _listed(operators(program)) or "a program without statements"
    dtypes = _listed(_dtypes(program)) or "nothing"
    flags = (("training", program.mode.training), ("dynamic shapes", program.mode.dynamic))
    modes = [name for name, needed in flags if needed]
    where = f" ({_listed(modes)})" if modes else ""
    cause = f" ({signature.origin})" if signature.origin else ""
    return f"{what} of {dtypes}{where}: {_SAYS[signature.kind]}{cause}"


def unparsed(signature: Signature) -> tuple[Bucket, str]:
    """Bucket and title of a program whose operators are not known: all of one signature are one."""
    cause = f" ({signature.origin})" if signature.origin else ""
    return bucket_of_signature(signature), f"a program of other operators: {_SAYS[signature.kind]}{cause}"


def _dtypes(program: Program) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(spec.type.dtype) for spec in program.inputs))


def _listed(words: tuple[str, ...] | list[str]) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b, c and 4 more`."""
    if len(words) > _SHOWN_OPS:
        words = [*words[:_SHOWN_OPS], f"{len(words) - _SHOWN_OPS} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
