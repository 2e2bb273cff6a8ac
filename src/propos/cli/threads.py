"""The wait policy of OpenMP's threads, which has to be set before torch is imported.

With up to three threads, each pass through a network has one and waits for none (`propos.networks.parallel`). With
more, active waiting is fastest on an idle machine, and slowest if other programs need its cores: each thread then waits
for one that is not running (docs/speed.md). It changes no result.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from propos.common.plurals import counted

MANY = 4  # threads, from which on a pass has several
# Number of samples of the load, and seconds between them.
LOOKS, BETWEEN = 50, 0.01
OWN = (
    "OMP_",
    "GOMP_",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
)  # scikit-learn sets other KMP_ variables for its child processes
_RUNNING = Path("/proc/loadavg")
_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def set_wait_policy() -> str | None:
    """Set the threads' wait policy, and their number in a container with a quota; return a line that says so.

    Existing settings of OpenMP, by a person or by torchrun, are kept.
    """
    if any(name.startswith(OWN) for name in os.environ):
        return None
    settings, sentence = choice(_cores(), os.cpu_count() or 1, quota(), busy_threads)
    os.environ.update(settings)
    return sentence


def choice(
    cores: int, machine: int, limit: int | None, others: Callable[[], float | None]
) -> tuple[Mapping[str, str], str]:
    """Return the settings for a process that may use `cores`; `others()` counts other programs' busy threads."""
    threads = cores if limit is None else min(cores, limit)
    number = {} if threads == cores else {"OMP_NUM_THREADS": str(threads)}
    using, passive = f"Using {counted(threads, 'thread')}", {**number, "OMP_WAIT_POLICY": "PASSIVE"}
    if threads < MANY:
        return passive, f"{using}."
    busy = others()
    if busy is None or machine - busy > threads - 0.5:
        return number, f"{using} (active wait: the machine is idle)."
    return passive, f"{using} (passive wait: other programs use the machine)."


def busy_threads() -> float | None:
    """Return the median number of runnable threads of other programs, or None if the system does not report it.

    The median ignores short bursts of work.
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
    """Return the CPU quota of this process's control groups in cores, rounded up; None if there is no limit."""
    return min((limit for group in _control_groups() if (limit := _limit(group)) is not None), default=None)


def _control_groups() -> list[Path]:
    """Return the folders of this process's control group and its parents, for both cgroup versions."""
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
        except (OSError, ValueError):  # no quota, or "max"
            continue
    return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
