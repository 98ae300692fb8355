"""Reads the dynamic symbol table of a 64-bit little-endian ELF file."""

from __future__ import annotations

import struct
from pathlib import Path

_DYNSYM = 11


def undefined_symbols(path: Path) -> frozenset[str]:
    """Names that the library needs from others."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    names: set[str] = set()
    for section in sections:
        if section[1] != _DYNSYM:
            continue
        strings = sections[section[6]][4]
        for offset in range(section[4], section[4] + section[5], section[9]):
            name, _info, _other, home = struct.unpack_from("<IBBH", data, offset)
            if home == 0 and name:
                names.add(data[strings + name : data.index(b"\0", strings + name)].decode())
    return frozenset(names)
