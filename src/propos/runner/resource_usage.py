"""The resources that a run has used, over all resumptions: elapsed time, processor time and peak memory."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from propos.runs import RunInfo

STATUS, MARKS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PEAK = "5"  # clear_refs's code for the peak of resident memory
NEARLY = 1.02  # Linux counts pages in batches on each core: two readings of one peak may differ


@dataclass(frozen=True)
class ResourceUsage:
    """The resources used since this was created, added to those of the run before."""

    before: RunInfo
    began: float = field(default_factory=time.monotonic)
    processor: float = field(default_factory=time.process_time)

    def info(self) -> dict[str, float | int | None]:
        """Return the fields of run.json; processes that decode images are not counted.

        If the memory of one part of the run is unknown, the peak is unknown too.
        """
        stretches = [self.before.memory] if self.before.seconds else []
        memory = [each for each in (*stretches, peak_memory()) if each is not None]
        return {
            "seconds": self.before.seconds + time.monotonic() - self.began,
            "processor_seconds": self.before.processor_seconds + time.process_time() - self.processor,
            "memory": max(memory) if len(memory) > len(stretches) else None,
        }


@dataclass
class _NotReset:
    """The peak of this process that could not be reset."""

    bytes: int = 0


_not_reset = _NotReset()


def peak_memory() -> int | None:
    """Return this process's peak memory in bytes since the last reset.

    Return None if the system does not report it, or cannot reset it and an earlier peak was as high.
    """
    peak = _high_water()
    return peak if peak is not None and peak > NEARLY * _not_reset.bytes else None


def reset_peak_memory() -> None:
    """Free unused memory and reset the peak, so that one run's memory does not count for the next."""
    if not sys.platform.startswith("linux"):
        return
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    try:
        MARKS.write_text(PEAK)
        _not_reset.bytes = 0
    except OSError:
        _not_reset.bytes = _high_water() or 0


def _high_water() -> int | None:
    with suppress(OSError):
        match = re.search(r"^VmHWM:\s*(\d+) kB", STATUS.read_text(), flags=re.MULTILINE)
        return None if match is None else 1024 * int(match[1])
    return None
