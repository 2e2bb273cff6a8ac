"""Measure the cost of an E-step's scores at the size of ImageNet-1k, on synthetic labels."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from propos.clustering import churn, stable_numbers
from propos.evaluation import numbered, scores

IMAGES, CLASSES = 1_281_167, 1000


def timed(what: str, work: Callable[[], object]) -> object:
    """Do some work, and print a row with seconds on the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    made = work()
    print(f"| {what} | {time.perf_counter() - clock:.2f} s | {time.process_time() - processor:.2f} s |", flush=True)
    return made


def main() -> None:
    """Measure and print the table."""
    draw = np.random.default_rng(0)
    truth = draw.integers(CLASSES, size=IMAGES)
    found = np.where(draw.random(IMAGES) < 0.4, truth, (draw.random(IMAGES) ** 2 * CLASSES).astype(np.int64))
    words = np.array([f"n{number:08d}" for number in range(CLASSES)])[truth]
    print(f"{IMAGES:,} images, {CLASSES:,} classes and clusters\n\n| | clock | processor |\n|---|---|---|")
    numbers = timed("names as numbers, once a run", lambda: numbered(words))
    assert isinstance(numbers, np.ndarray)
    timed("NMI, AMI, ARI and accuracy", lambda: scores(numbers, found))
    timed("matching clusters to those before", lambda: stable_numbers(truth, found, CLASSES))
    timed("who moved", lambda: churn(truth, found))


if __name__ == "__main__":
    main()
