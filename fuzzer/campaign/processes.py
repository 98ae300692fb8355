"""Control over processes on Linux: who dies with whom, what a family of processes holds in memory, how it ends."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PAGE = os.sysconf("SC_PAGE_SIZE")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {value}): {os.strerror(code)}")


def die_with(parent: int) -> None:
    """Makes the kernel kill this process as soon as its parent dies, also if that happened just now."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent dies, so that it can end and reap them."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> tuple[int, ...]:
    """The live or unreaped children of a process; empty when it is gone."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as listing:
                found.extend(int(word) for word in listing.read().split())
    except (FileNotFoundError, ProcessLookupError):
        return tuple(found)
    return tuple(found)


def family(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    for child in children(pid):
        yield from family(child)


def resident_bytes(pid: int) -> int:
    """Bytes of memory that a process and its descendants hold; pages they share count once for each."""
    total = 0
    for member in family(pid):
        try:
            with open(f"/proc/{member}/statm", encoding="ascii") as statm:
                total += int(statm.read().split()[1]) * PAGE
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between the two looks
    return total


def kill_group(leader: int) -> None:
    """Kills every process of a group; one that is gone already is as good as killed."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_family(pid: int) -> None:
    """Kills a process and its descendants, also those that moved to a group of their own."""
    for member in tuple(family(pid)):
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            continue


def thread_count() -> int:
    """Threads of this process. A process with more than one must not fork: the others' locks stay locked for ever."""
    return len(os.listdir("/proc/self/task"))
