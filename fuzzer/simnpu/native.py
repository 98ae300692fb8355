"""A lowered kernel as host machine code, launched over its whole grid by one native call."""

from __future__ import annotations

import ctypes
import functools
import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from fuzzer.simnpu.kernel_cache import KernelCache, cache_key
from fuzzer.simnpu.toolchain import UnsupportedKernel

GRID_ENTRY = "simnpu_grid"
"""Exported by every kernel object: `void (const void *slots, int64 gx, gy, gz, order)`."""

_IMPLICIT_POINTERS = 2
"""The adapter puts two memrefs, lock and workspace, before a kernel's own arguments."""
_TRAILING_INDICES = 6
"""... and six i32 after them: the grid and the program's place in it."""
_MEMREF_WORDS = 5
"""Allocated pointer, aligned pointer, offset, size, stride of a one-dimensional memref."""
_UNBOUNDED = 1 << 40
"""Elements a pointer argument is described to have: bounds come from guard pages, not from the descriptor."""
_WORKSPACE_BYTES = 1 << 20


class ProgramOrder(IntEnum):
    """In which order the programs of a grid run. A kernel whose result depends on it races on the device."""

    ASCENDING = 0
    DESCENDING = 1


# --- LLVM IR to object code -----------------------------------------------------------------------------------------

_DEFINE = re.compile(r"define void @(\w+)\((.*?)\)(?: [^{]*)?\{", re.DOTALL)
_DECLARE = re.compile(r"^declare ([\w ]+?) @(__hmf_\w+)\(([^)]*)\)", re.MULTILINE)
_SUFFIX = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "i1": "i1"}


def _type_suffix(llvm_type: str) -> str:
    return _SUFFIX.get(llvm_type, llvm_type)


def bind_device_math(text: str) -> str:
    """Point the `__hmf_*` functions, one name of which serves several types, at host functions named by their type.

    `half` and `bfloat` go through the float version and round once, which is what correctly rounded hardware does
    and needs no 16-bit calling convention in C.
    """
    definitions: list[str] = []

    def bind(match: re.Match[str]) -> str:
        result, name, parameters = match[1].split()[-1], match[2], [p.split()[0] for p in match[3].split(",")]
        wide = ["float" if p in ("half", "bfloat") else p for p in parameters]
        wide_result = "float" if result in ("half", "bfloat") else result
        target = f"{name}_{_type_suffix(wide[0])}"
        declaration = f"declare {wide_result} @{target}({', '.join(wide)})"
        body, values = [], []
        for index, (given, needed) in enumerate(zip(parameters, wide, strict=True)):
            if given == needed:
                values.append(f"{needed} %a{index}")
            else:
                body.append(f"  %w{index} = fpext {given} %a{index} to {needed}")
                values.append(f"{needed} %w{index}")
        body.append(f"  %r = call {wide_result} @{target}({', '.join(values)})")
        if result == wide_result:
            body.append(f"  ret {result} %r")
        else:
            body += [f"  %n = fptrunc {wide_result} %r to {result}", f"  ret {result} %n"]
        formal = ", ".join(f"{p} %a{i}" for i, p in enumerate(parameters))
        definitions.append(f"{declaration}\ndefine internal {result} @{name}({formal}) {{\n" + "\n".join(body) + "\n}")
        return ""

    return _DECLARE.sub(bind, text) + "\n" + "\n".join(definitions) + "\n"


def _parameters(text: str, entry: str) -> list[str]:
    for match in _DEFINE.finditer(text):
        if match[1] == entry:
            return [parameter.split()[0] for parameter in match[2].split(",")]
    raise ValueError(f"no function {entry} in the lowered module")


def add_grid_loop(text: str, entry: str) -> tuple[str, tuple[str, ...]]:
    """Append the exported loop over the grid; returns the module and the LLVM types of the kernel's argument slots.

    Slots are eight bytes each. The tile memory that one program allocated is given back before the next one starts.
    """
    types = _parameters(text, entry)
    slots = types[:-_TRAILING_INDICES]
    loads = "\n".join(
        f"  %p{i} = getelementptr i64, ptr %slots, i64 {i}\n  %v{i} = load {kind}, ptr %p{i}, align 8"
        for i, kind in enumerate(slots)
    )
    values = ", ".join(f"{kind} %v{i}" for i, kind in enumerate(slots))
    loop = f"""
declare void @simnpu_tile_reset()
define void @{GRID_ENTRY}(ptr %slots, i64 %gx, i64 %gy, i64 %gz, i64 %order) {{
entry:
{loads}
  %gxy = mul i64 %gx, %gy
  %total = mul i64 %gxy, %gz
  %last = sub i64 %total, 1
  %backward = icmp eq i64 %order, {int(ProgramOrder.DESCENDING)}
  %gx32 = trunc i64 %gx to i32
  %gy32 = trunc i64 %gy to i32
  %gz32 = trunc i64 %gz to i32
  %any = icmp sgt i64 %total, 0
  br i1 %any, label %program, label %end
program:
  %n = phi i64 [ 0, %entry ], [ %next, %program ]
  %mirrored = sub i64 %last, %n
  %id = select i1 %backward, i64 %mirrored, i64 %n
  %x = urem i64 %id, %gx
  %rest = udiv i64 %id, %gx
  %y = urem i64 %rest, %gy
  %z = udiv i64 %rest, %gy
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
  call void @{entry}({values}, i32 %gx32, i32 %gy32, i32 %gz32, i32 %x32, i32 %y32, i32 %z32)
  call void @simnpu_tile_reset()
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %total
  br i1 %more, label %program, label %end
end:
  ret void
}}
"""
    return text + loop, tuple(slots)


_ALLOCATORS = (("@malloc(", "@simnpu_tile_alloc("), ("@free(", "@simnpu_tile_free("))


@functools.cache
def _host() -> tuple[str, str]:
    """CPU name and features to compile for: one of two fixed levels, so that results do not differ by machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    modern = all(features.get(name) for name in ("avx2", "f16c", "fma", "bmi2"))
    return ("x86-64-v3", "") if modern else ("x86-64", "")


def _target_machine() -> Any:
    cpu, features = _host()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=0, reloc="pic", codemodel="small")


def compile_object(text: str) -> bytes:
    """LLVM IR text to a relocatable object for the host.

    Nothing is optimised: measured on 60 generated kernels that takes 4 ms each instead of 28, and the memory-bound
    loops of a tile run at nearly the same speed.
    """
    module = llvm.parse_assembly(text)
    code: bytes = _target_machine().emit_object(module)
    return code


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """Names that an ELF64 object needs from elsewhere."""
    (section_offset,) = struct.unpack_from("<Q", code, 0x28)
    entry_size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, section_offset + i * entry_size) for i in range(count)]
    names: list[str] = []
    for _, kind, _, _, offset, size, link, _, _, item in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[link][4]
        for place in range(offset + item, offset + size, item):
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", code, place)
            if section == 0 and name:  # SHN_UNDEF
                start = strings + name
                names.append(code[start : code.index(b"\0", start)].decode())
    return tuple(sorted(set(names)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeCode:
    """What the cache keeps of a kernel: host object code and the LLVM types of its argument slots."""

    code: bytes
    slots: tuple[str, ...]


def build_code(kernel: str, entry: str, llvm_ir: str) -> NativeCode:
    """LLVM IR of a kernel to object code with the grid loop. Raises UnsupportedKernel."""
    try:
        text = bind_device_math(llvm_ir)
        for old, new in _ALLOCATORS:
            text = text.replace(old, new)
        text, slots = add_grid_loop(text, entry)
        return NativeCode(code=compile_object(text), slots=slots)
    except (RuntimeError, ValueError) as exception:  # llvmlite reports a module it cannot parse as RuntimeError
        raise UnsupportedKernel(
            kernel=kernel, tool="llvmlite", origin=f"llvmlite: {type(exception).__name__}", message=str(exception)
        ) from exception


def load_code(cache: KernelCache, key: str) -> NativeCode | None:
    """A kernel compiled earlier, by any process."""
    stored = cache.get(key)
    if stored is None:
        return None
    header, _, code = stored.partition(b"\n")
    return NativeCode(code=code, slots=tuple(json.loads(header)))


def store_code(cache: KernelCache, key: str, native: NativeCode) -> None:
    """Keep a compiled kernel for every other process."""
    cache.put(key, json.dumps(native.slots).encode() + b"\n" + native.code)


def code_key(linalg: str, versions: str) -> str:
    """Cache key of a kernel's object code; `versions` names the tools, the passes and the host runtime."""
    return cache_key(["native", versions, *_host(), linalg])


# --- launching ------------------------------------------------------------------------------------------------------

_INTEGERS = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "?", "u8": "B", "u16": "H", "u32": "I"}
_INTEGERS["u64"] = "Q"


def _round_to_bfloat16(value: float) -> int:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if bits & 0x7F800000 == 0x7F800000:
        return int(bits >> 16) | (0x40 if bits & 0xFFFF else 0)
    return int(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF


def pack_scalar(kind: str, value: Any) -> bytes:
    """One eight-byte slot holding `value` as Triton's scalar type `kind`: i1 to i64, u1 to u64, fp16 to fp64, bf16.

    Integers wrap to their width, as the device's launcher does.
    """
    if kind in ("fp32", "f32"):
        return struct.pack("<f4x", value)
    if kind in ("fp64", "f64"):
        return struct.pack("<d", value)
    if kind in ("fp16", "f16"):
        return struct.pack("<e6x", value)
    if kind == "bf16":
        return struct.pack("<H6x", _round_to_bfloat16(float(value)))
    code = _INTEGERS.get(kind)
    if code is None:
        raise ValueError(f"unknown scalar type {kind!r} of a kernel argument")
    if code == "?":
        return struct.pack("<?7x", bool(value))
    width = struct.calcsize(code)
    return (int(value) & ((1 << 8 * width) - 1)).to_bytes(8, "little")


@functools.cache
def _load_runtime(library: Path) -> None:
    """Make the host versions of the device's math visible to generated code."""
    llvm.load_library_permanently(str(library))


class NativeKernel:
    """Executable form of one compiled kernel."""

    def __init__(self, *, kernel: str, native: NativeCode, signature: Sequence[str], runtime: Path) -> None:
        """`signature` holds Triton's types of the run-time arguments in order. Raises UnsupportedKernel."""
        _host()
        _load_runtime(runtime)
        missing = [name for name in undefined_symbols(native.code) if not _resolves(name)]
        if missing:
            raise UnsupportedKernel(
                kernel=kernel,
                tool="linker",
                origin=f"linker: {missing[0]}",
                message=f"no host version of {', '.join(missing)}",
            )
        self._signature = tuple(signature)
        words = sum(_MEMREF_WORDS if kind.startswith("*") else 1 for kind in self._signature)
        expected = words + _IMPLICIT_POINTERS * _MEMREF_WORDS
        if expected != len(native.slots):
            raise UnsupportedKernel(
                kernel=kernel,
                tool="linker",
                origin="linker: argument count",
                message=f"kernel takes {len(native.slots)} slots, its signature {self._signature} fills {expected}",
            )
        self._workspace = (ctypes.c_char * _WORKSPACE_BYTES)()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(native.code))
        self._engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_char_p, *[ctypes.c_int64] * 4)
        self._call = prototype(self._engine.get_function_address(GRID_ENTRY))

    def launch(self, grid: tuple[int, int, int], values: Sequence[Any], order: int = ProgramOrder.ASCENDING) -> None:
        """Run every program of the grid. A pointer is a tensor, an address, or None."""
        self._call(self.pack(values), *grid, order)

    def pack(self, values: Sequence[Any]) -> bytes:
        """The argument slots for one launch."""
        place = ctypes.addressof(self._workspace)
        words = [struct.pack("<QQqqq", place, place, 0, _WORKSPACE_BYTES, 1)] * _IMPLICIT_POINTERS
        for kind, value in zip(self._signature, values, strict=True):
            if kind.startswith("*"):
                address = value.data_ptr() if hasattr(value, "data_ptr") else int(value or 0)
                words.append(struct.pack("<QQqqq", address, address, 0, _UNBOUNDED, 1))
            else:
                words.append(pack_scalar(kind, value))
        return b"".join(words)


def _resolves(name: str) -> bool:
    return bool(llvm.address_of_symbol(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """How the values that a launcher passes meet the parameters of the compiled function."""

    positions: tuple[int, ...]
    """Which of the passed values are run-time arguments: a launcher passes every parameter that is not a constexpr,
    those folded in as constants (for example `r0_numel`) are no parameters of the compiled function."""
    names: tuple[str, ...]
    types: tuple[str, ...]
    """Triton's type of each run-time argument."""
    constants: Mapping[str, Any]
    """Values of all other parameters."""
    constexprs: tuple[str, ...]

    @classmethod
    def of(cls, source: Any) -> Interface:
        """Read it from Triton's ASTSource, whose mappings are keyed by name or by position."""
        parameters = list(source.fn.arg_names)

        def by_name(mapping: Mapping[Any, Any]) -> dict[str, Any]:
            return {parameters[key] if isinstance(key, int) else key: value for key, value in mapping.items()}

        constants, signature = by_name(source.constants), by_name(source.signature)
        constexprs = [parameters[index] for index in source.fn.constexprs]
        passed = [name for name in parameters if name not in constexprs]
        kept = [(position, name) for position, name in enumerate(passed) if name not in constants]
        return cls(
            positions=tuple(position for position, _ in kept),
            names=tuple(name for _, name in kept),
            types=tuple(signature[name] for _, name in kept),
            constants=constants,
            constexprs=tuple(constexprs),
        )
