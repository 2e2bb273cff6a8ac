"""How the threads of a command wait for each other: decided before torch is read, which is when OpenMP asks.

Threads that spin while they wait are the fastest on a machine that has nothing else to do, and the slowest where other
programs want its cores: then each waits for a thread that was put aside (docs/speed.md). It changes no result.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from propos.common.words import counted

# At what is running, and seconds from one to the next.
LOOKS, BETWEEN = 50, 0.01
OWN = ("OMP_", "GOMP_", "KMP_BLOCKTIME", "MKL_NUM_THREADS")  # scikit-learn sets other KMP_ for whom it starts
_RUNNING = Path("/proc/loadavg")
_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def settle_threads() -> str | None:
    """Set how threads wait, and how many there are in a container that has fewer cores' time; say what was chosen.

    A person's own settings of OpenMP, and torchrun's, hold as they are.
    """
    if any(name.startswith(OWN) for name in os.environ):
        return None
    others = busy_others()
    if others is None:
        return None
    settings, sentence = choice(_cores(), os.cpu_count() or 1, quota(), others)
    os.environ.update(settings)
    return sentence


def choice(cores: int, machine: int, limit: int | None, others: float) -> tuple[Mapping[str, str], str]:
    """Return the settings for a process that may use so many of a machine's cores, while so many others run on it."""
    threads = cores if limit is None else min(cores, limit)
    number = {} if threads == cores else {"OMP_NUM_THREADS": str(threads)}
    using = f"Using {counted(threads, 'thread')}"
    if machine - others > threads - 0.5:
        return number, f"{using} (active wait: the machine is idle)."
    return {**number, "OMP_WAIT_POLICY": "PASSIVE"}, f"{using} (passive wait: other programs use the machine)."


def busy_others() -> float | None:
    """Return how many threads of other programs run or want to, the median of some looks; None where none tells.

    A moment's work of others, however much of it, would raise a mean.
    """
    running = []
    for _ in range(LOOKS):
        try:
            running.append(int(_RUNNING.read_text().split()[3].partition("/")[0]) - 1)
        except (OSError, ValueError, IndexError):
            return None
        time.sleep(BETWEEN)
    return statistics.median(running)


def quota() -> int | None:
    """Return how many cores' time this process's control groups may use, rounded up; None where nothing limits it."""
    return min((limit for group in _control_groups() if (limit := _limit(group)) is not None), default=None)


def _control_groups() -> list[Path]:
    """Return the folders of this process's control group and of those above it, in both versions' places."""
    try:
        lines = _MEMBERSHIP.read_text().splitlines()
    except OSError:
        return []
    groups = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _GROUPS / "cpu" if controllers else _GROUPS
        names = [name for name in path.split("/") if name]
        groups += [root.joinpath(*names[:depth]) for depth in range(len(names) + 1)]
    return groups


def _limit(group: Path) -> int | None:
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            share, period = " ".join((group / name).read_text() for name in files).split()
            if int(share) > 0:
                return max(1, math.ceil(int(share) / int(period)))
        except (OSError, ValueError):  # there is none, or it is "max"
            continue
    return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
