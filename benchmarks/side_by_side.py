"""Two kinds of work timed in turn, the ratio that is compared with a target, and the memory that work takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """Median seconds of two kinds of the same work, and the median ratios of the first to the second."""

    what: str
    names: tuple[str, str]
    seconds: tuple[float, float]
    ratio: float
    processor_ratio: float

    def row(self) -> str:
        """Return a row of the table."""
        first, second = (f"{name} {1000 * value:,.1f} ms" for name, value in zip(self.names, self.seconds, strict=True))
        return f"| {self.what} | {first} | {second} | {self.ratio:.2f} | {self.processor_ratio:.2f} |"


def compare(what: str, works: dict[str, Callable[[], object]], rounds: int) -> Comparison:
    """Time two kinds of work in turn, after one unmeasured round, and show the row."""
    for work in works.values():
        work()
    times = np.array([[_times(work) for work in works.values()] for _ in range(rounds)])
    ratio, processor_ratio = np.median(times[:, 0] / times[:, 1], axis=0).tolist()
    first, second = np.median(times[..., 0], axis=0).tolist()
    name, other = works
    comparison = Comparison(what, (name, other), (first, second), ratio, processor_ratio)
    print(comparison.row(), flush=True)
    return comparison


def _times(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds on the clock and seconds of all processors."""
    clock, processors = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processors


def verdict(comparison: Comparison, target: str, met: bool) -> None:
    """Print whether a target is met."""
    first, second = comparison.names
    measured = f"{first}/{second} {comparison.ratio:.3f} ({comparison.processor_ratio:.3f} in processor time)"
    print(f"{'ok    ' if met else 'missed'} {comparison.what}: {measured}, target {target}")


def peak_memory(work: Callable[[], object]) -> float | None:
    """Return by how many MB the process grows at most during the work, where the system tells."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        return None

    def held(key: str) -> float:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(key)) / 1024

    reset.write_text("5")  # the peak is counted from here
    before = held("VmRSS")
    work()
    return held("VmHWM") - before
