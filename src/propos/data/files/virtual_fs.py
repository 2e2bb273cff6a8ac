"""Virtual file systems, such as /proc and /sys, which contain no user files."""

from __future__ import annotations

import os
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
KINDS = frozenset(
    {"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "pstore", "bpf", "efivarfs"}
    | {"devpts", "mqueue", "hugetlbfs", "fusectl", "binfmt_misc", "rpc_pipefs", "nsfs", "selinuxfs"}
)


def virtual_devices(mounts: Path = MOUNTS) -> frozenset[int]:
    """Return the device numbers of virtual file systems; none if the system does not list them."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    found = set()
    for line in lines:
        # 22 27 0:21 / /proc rw,relatime - proc proc rw
        where, _, what = line.partition(" - ")
        fields = where.split()
        if len(fields) > 2 and what.partition(" ")[0] in KINDS:
            major, _, minor = fields[2].partition(":")
            found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)
