"""Replay: corpus entries run again, each in a process of its own, and compared with what is expected of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fuzzer.campaign.protocol import Reply, RunCase, Settings
from fuzzer.campaign.worker import Pool
from fuzzer.corpus import Entry, Platform, Standing, compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One entry, run again."""

    path: Path
    entry: Entry
    reply: Reply
    standing: Standing


def replay(
    entries: Sequence[tuple[Path, Entry]], pool: Pool, *, reintroduced: Sequence[str] = (), own_backend: bool = True
) -> Iterator[Replayed]:
    """Runs entries side by side and gives them in order. `reintroduced` are the slugs of what the pool brings back.

    With `own_backend` each entry runs on the Inductor backend of torch_npu that it was found on.
    """
    futures = [
        pool.submit(RunCase(case=entry.case), settings=_settings(pool.settings, entry, own_backend))
        for _, entry in entries
    ]
    for (path, entry), future in zip(entries, futures, strict=True):
        reply = future.result()
        standing = compare(entry, reply.verdict, target=pool.settings.target, reintroduced=reintroduced)
        yield Replayed(path=path, entry=entry, reply=reply, standing=standing)


def _settings(settings: Settings, entry: Entry, own_backend: bool) -> Settings:
    on_npu = Platform.of(settings.target) is Platform.NPU
    return replace(settings, backend=entry.backend) if own_backend and on_npu and entry.backend else settings
