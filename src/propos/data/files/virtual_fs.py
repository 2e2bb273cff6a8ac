"""Kinds of file systems: virtual ones, such as /proc, and those that keep the time at which a file was changed."""

from __future__ import annotations

import os
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
KINDS = frozenset(
    {"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "pstore", "bpf", "efivarfs"}
    | {"devpts", "mqueue", "hugetlbfs", "fusectl", "binfmt_misc", "rpc_pipefs", "nsfs", "selinuxfs"}
)
# Their change time (ctime) moves with every write and cannot be set back; FAT, SMB and FUSE promise no such thing.
TIMED = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "tmpfs", "overlay"}
    | {"nfs", "nfs4", "ceph", "lustre", "gpfs"}
)


def virtual_devices(mounts: Path = MOUNTS) -> frozenset[int]:
    """Return the device numbers of virtual file systems; none if the system does not list them."""
    return _devices(KINDS, mounts)


def timed_devices(mounts: Path = MOUNTS) -> frozenset[int]:
    """Return the device numbers of file systems that keep change times; none if the system does not list them."""
    return _devices(TIMED, mounts)


def _devices(kinds: frozenset[str], mounts: Path) -> frozenset[int]:
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    found = set()
    for line in lines:
        # 22 27 0:21 / /proc rw,relatime - proc proc rw
        where, _, what = line.partition(" - ")
        fields = where.split()
        if len(fields) > 2 and what.partition(" ")[0] in kinds:
            major, _, minor = fields[2].partition(":")
            found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)
