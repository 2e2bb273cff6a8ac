"""What a command of ours asks of the C library's memory."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
NEVER = -1
LARGEST = 2**30


def keep_freed_memory() -> None:
    """Have glibc keep what tensors free for the next ones, instead of giving it back and fetching it page by page.

    A step frees and takes the same large blocks again and again; fetching them anew is a tenth of it (docs/speed.md).
    Other systems' C libraries have no such wish and are left alone.
    """
    if not sys.platform.startswith("linux"):
        return
    wish = getattr(ctypes.CDLL(None), "mallopt", None)
    if wish is not None:
        wish(M_MMAP_THRESHOLD, LARGEST)
        wish(M_TRIM_THRESHOLD, NEVER)
