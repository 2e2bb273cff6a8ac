"""Tuning of the C library's memory allocator."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h
NEVER = -1
LARGEST = 2**30


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next tensors instead of returning it to the system.

    Each step frees and allocates the same large blocks; returning them costs a tenth of its time (docs/speed.md). All
    threads share one heap: those of their own are of 64 MB at most, and larger blocks would always be returned.
    Other C libraries have no such setting and are left alone.
    """
    if not sys.platform.startswith("linux"):
        return
    wish = getattr(ctypes.CDLL(None), "mallopt", None)
    if wish is not None:
        wish(M_MMAP_THRESHOLD, LARGEST)
        wish(M_TRIM_THRESHOLD, NEVER)
        wish(M_ARENA_MAX, 1)
