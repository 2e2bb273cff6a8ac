"""What a run has taken: seconds, those of the processor, and the most memory, added up over resumptions."""

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
PEAK = "5"  # what clear_refs takes for the peak of resident memory
NEARLY = 1.02  # Linux counts pages a batch at a time on each core: two readings of one peak may differ by some


@dataclass(frozen=True)
class Spending:
    """A stretch of work that began when this was made, after what earlier ones of the same run had taken."""

    before: RunInfo
    began: float = field(default_factory=time.monotonic)
    processor: float = field(default_factory=time.process_time)

    def info(self) -> dict[str, float | int | None]:
        """Return what run.json says of it now; of processes that decode images it does not know.

        Where the memory of one stretch is not known, the most of all of them is not either.
        """
        stretches = [self.before.memory] if self.before.seconds else []
        memory = [each for each in (*stretches, peak_memory()) if each is not None]
        return {
            "seconds": self.before.seconds + time.monotonic() - self.began,
            "processor_seconds": self.before.processor_seconds + time.process_time() - self.processor,
            "memory": max(memory) if len(memory) > len(stretches) else None,
        }


@dataclass
class _Unforgotten:
    """What this process had at most when its peak was to be forgotten and could not be."""

    bytes: int = 0


_unforgotten = _Unforgotten()


def peak_memory() -> int | None:
    """Return the most bytes that this process has had in memory since its peak was forgotten.

    Nothing where the system does not say, and where it forgets no peak and there was as high a one before.
    """
    peak = _high_water()
    return peak if peak is not None and peak > NEARLY * _unforgotten.bytes else None


def forget_peak_memory() -> None:
    """Give back what is not needed and measure the peak anew, so that one run's memory is not the next one's."""
    if not sys.platform.startswith("linux"):
        return
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    try:
        MARKS.write_text(PEAK)
        _unforgotten.bytes = 0
    except OSError:
        _unforgotten.bytes = _high_water() or 0


def _high_water() -> int | None:
    with suppress(OSError):
        match = re.search(r"^VmHWM:\s*(\d+) kB", STATUS.read_text(), flags=re.MULTILINE)
        return None if match is None else 1024 * int(match[1])
    return None
