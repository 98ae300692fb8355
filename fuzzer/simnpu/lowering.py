"""From Linalg, the last form that the open tools share with the device's closed ones, to LLVM IR for the host."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from fuzzer.simnpu.toolchain import (
    Tools,
    UnsupportedKernel,
    diagnose,
    exception_origin,
    mlir_context,
    readable,
)

LOWERING_PASSES = (
    "--allow-unregistered-dialect",
    "--convert-elementwise-to-linalg",
    "--eliminate-empty-tensors",
    "--empty-tensor-to-alloc-tensor",
    "--one-shot-bufferize=allow-return-allocs-from-loops=true",
    "--convert-linalg-to-loops",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-cf-to-llvm",
    "--convert-arith-to-llvm",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-index-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm",
    "--convert-arith-to-llvm",
    "--reconcile-unrealized-casts",
)


VERSION = f"2 {' '.join(LOWERING_PASSES)}"
"""Distinguishes what this module makes of a kernel in the cache; count up when its edits of the Linalg change."""

_INDEX_REDUCTION = re.compile(
    r"^(?P<indent> *)(?P<result>%[\w:]+) = linalg\.reduce ins\((?P<ins>[^)]*)\) "
    r"outs\((?P<value>%[\w#]+), (?P<index>%[\w#]+) : (?P<value_type>tensor<[^>]*>), (?P<index_type>tensor<[^>]*>)\)"
    r"(?P<rest>.*reduce_mode = \"(?P<mode>max|min)_with_index\".*)$",
    re.MULTILINE,
)
_LOWEST = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}
_HIGHEST = {"f16": "0x7C00", "bf16": "0x7F80", "f32": "0x7F800000", "f64": "0x7FF0000000000000"}


def _extreme(tensor: str, *, lowest: bool) -> tuple[str, str]:
    """Literal and type of the least or greatest value of a tensor's elements."""
    element = tensor[:-1].rpartition("x")[2].removeprefix("tensor<")
    floats = _LOWEST if lowest else _HIGHEST
    if element in floats:
        return floats[element], element
    bits = int(element[1:])
    return str(-(1 << (bits - 1)) if lowest else (1 << (bits - 1)) - 1), element


def initialise_index_reductions(linalg: str) -> str:
    """Give every reduction to an extreme and its index a neutral initial value.

    The device's instruction for `reduce_mode = "max_with_index"` starts from the data, so the adapter leaves the
    initial value undefined; read as plain Linalg, the operation would start from whatever the tile's memory held.
    """
    count = 0

    def initialise(match: re.Match[str]) -> str:
        nonlocal count
        lines, names = [], []
        parts = (("value", match["mode"] == "max"), ("index", False))
        for part, lowest in parts:
            kind = match[f"{part}_type"]
            literal, element = _extreme(kind, lowest=lowest)
            constant, filled = f"%simnpu_c{count}", f"%simnpu_f{count}"
            count += 1
            fill = f"linalg.fill ins({constant} : {element}) outs({match[part]} : {kind}) -> {kind}"
            lines.append(f"{match['indent']}{constant} = arith.constant {literal} : {element}")
            lines.append(f"{match['indent']}{filled} = {fill}")
            names.append(filled)
        lines.append(
            f"{match['indent']}{match['result']} = linalg.reduce ins({match['ins']}) "
            f"outs({', '.join(names)} : {match['value_type']}, {match['index_type']}){match['rest']}"
        )
        return "\n".join(lines)

    return _INDEX_REDUCTION.sub(initialise, linalg)


def entry_point(linalg: str) -> str:
    """Name of the kernel's function in its Linalg module."""
    found = re.search(r"func\.func @(\w+)\(", linalg)
    if found is None:
        raise ValueError("no kernel function in the Linalg module")
    return found[1]


def lower(kernel: str, linalg: str, tools: Tools) -> str:
    """Linalg to LLVM IR, as text. Raises UnsupportedKernel."""
    from triton._C.libtriton import ir, llvm

    with tempfile.TemporaryDirectory(prefix="simnpu-") as directory:
        source, lowered = Path(directory) / "kernel.mlir", Path(directory) / "kernel.llvm.mlir"
        source.write_text(initialise_index_reductions(linalg))
        command = [str(tools.bishengir_opt), str(source), *LOWERING_PASSES, "-o", str(lowered)]
        done = subprocess.run(command, capture_output=True, check=False)
        stderr = readable(done.stderr)
        if done.returncode != 0:
            origin = diagnose("bishengir-opt", done.returncode, stderr)
            raise UnsupportedKernel(kernel=kernel, tool="bishengir-opt", origin=origin, message=stderr)
        context = mlir_context()
        try:
            module = ir.parse_mlir_module(str(lowered), context)
            module.context = context
            return str(llvm.to_module(module, llvm.context()))
        except Exception as exception:  # libtriton raises bare RuntimeError with the diagnostic on stderr
            origin = exception_origin(exception)
            raise UnsupportedKernel(
                kernel=kernel, tool="libtriton", origin=origin, message=str(exception)
            ) from exception
