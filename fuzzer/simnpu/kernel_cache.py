"""On-disk results of the slow compiler tools: content-addressed, atomic, bounded, shared by any number of processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

DEFAULT_LIMIT = 2 << 30
"""Bytes that the cache may grow to before the entries unused for longest are dropped."""

_DIGEST = hashlib.sha256().digest_size
_EVICT_PREFIX = "00"


def cache_key(parts: Iterable[str]) -> str:
    """Hex name of a result that depends on nothing but `parts`."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


class KernelCache:
    """Maps hex keys to bytes below one directory.

    A value becomes visible by a rename and carries its own digest, so a process killed at any instant, or a disk
    that filled up, leaves either the whole value or none.
    """

    def __init__(self, directory: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = directory
        self.limit = limit

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """The stored value, or None. A damaged entry is removed and counts as absent."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        value = data[_DIGEST:]
        if hashlib.sha256(value).digest() != data[:_DIGEST]:
            path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(FileNotFoundError):  # another process may evict it between the two calls
            os.utime(path)
        return value

    def put(self, key: str, value: bytes) -> None:
        """Store `value`; the last of several concurrent writers wins, all of them having written the same."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(value).digest() + value)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        if key.startswith(_EVICT_PREFIX):  # one write in 256, the same ones on every machine: no counter to share
            self.evict()

    def evict(self) -> int:
        """Remove the entries unused for longest until four fifths of the limit is left; returns how many went."""
        entries: list[tuple[float, int, Path]] = []
        for path in self.directory.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return 0
        removed = 0
        for _, size, path in sorted(entries):
            if total <= self.limit * 4 // 5:
                break
            path.unlink(missing_ok=True)
            total -= size
            removed += 1
        return removed
