"""Available memory."""

from __future__ import annotations

import os
from pathlib import Path

from propos.common.errors import InputError

_SYSTEM = Path("/proc/meminfo")
_CONTAINERS = (  # the limit of a container and what it has taken, of the newer and the older kind
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


def check_fits(needed: int, name: str, advice: str) -> None:
    """Refuse before it is read what does not fit into memory."""
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(f"{name}: takes {needed / 1e9:,.1f} GB of memory and {free / 1e9:,.1f} GB are free: {advice}")


def free_memory() -> int | None:
    """Return the available bytes; None if the system does not report them."""
    known = [free for free in (_of_system(), *(_of_container(*files) for files in _CONTAINERS)) if free is not None]
    return min(known, default=None)


def _of_system() -> int | None:
    try:
        lines = _SYSTEM.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # total memory, if free memory is not reported
    except (AttributeError, ValueError, OSError):
        return None


def _of_container(limit: Path, taken: Path) -> int | None:
    try:
        return max(0, int(limit.read_text()) - int(taken.read_text()))
    except (OSError, ValueError):  # no such file, or no limit
        return None
