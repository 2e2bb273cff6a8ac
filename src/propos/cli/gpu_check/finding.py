"""Rows of a GPU's self-test: a kind of work on the card, the expected result, and how far the two may differ."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from propos.common.errors import InputError, RunFailed

CPU = torch.device("cpu")
REPEATS = 10  # timed calls
CYCLES_A_SECOND = 2e9  # of the card's clock, at most: only so that it sleeps long enough

Values = Sequence[Tensor]
Work = Callable[[torch.device], Values]


@dataclass(frozen=True)
class Finding:
    """A kind of work on the card: how far its result is from the expected one, and how fast it was."""

    name: str
    difference: float
    bound: float
    peak_bytes: int
    images_a_second: float | None = None
    busy: float | None = None  # the share of the time in which the card computes

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the bound; NaN never is."""
        return self.difference <= self.bound


def relative_difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest value; NaN and other shapes are infinitely far."""
    if found.shape != expected.shape:
        return math.inf
    difference = float(
        (found.double() - expected.double()).abs().max() / expected.double().abs().max().clamp(min=1e-12)
    )
    return difference if math.isfinite(difference) else math.inf


def largest_difference(found: Values, expected: Values) -> float:
    """Return the largest relative difference of any of several tensors, each relative to its own largest value."""
    if len(found) != len(expected):
        return math.inf
    return max(relative_difference(*pair) for pair in zip(found, expected, strict=True))


@dataclass(frozen=True)
class Row:
    """A kind of work, and what it is compared with."""

    name: str
    work: Work
    bound: float
    reference: Work | None = None  # what is expected; None: the same work on the CPU
    difference: Callable[[Values, Values], float] = largest_difference
    # Work to be timed, and its number of images.
    timed: Callable[[], AbstractContextManager[tuple[Callable[[], object], int]]] | None = None

    def find(self, card: torch.device) -> Finding:
        """Do the work on the card and compare it; a card on which it fails is infinitely far."""
        torch.cuda.reset_peak_memory_stats(card)
        try:
            found = [each.cpu() for each in self.work(card)]
        except (InputError, RunFailed):  # such as a loss that became NaN
            found = []
        peak = torch.cuda.max_memory_allocated(card)
        expected = [each.cpu() for each in (self.work if self.reference is None else self.reference)(CPU)]
        finding = Finding(self.name, self.difference(found, expected), self.bound, peak)
        if self.timed is None:
            return finding
        with self.timed() as (work, images):
            return _measured(finding, card, work, images)


def _measured(finding: Finding, card: torch.device, work: Callable[[], object], images: int) -> Finding:
    """Return a finding with the images a second, the peak memory, and the share of the time in which the card computes.

    For the latter the card sleeps until the host has queued the work, which it then does without a gap.
    """
    work()  # the first call chooses algorithms
    torch.cuda.synchronize(card)
    torch.cuda.reset_peak_memory_stats(card)
    begin = time.perf_counter()
    for _ in range(REPEATS):
        work()
    torch.cuda.synchronize(card)
    seconds = (time.perf_counter() - begin) / REPEATS
    started, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(int(CYCLES_A_SECOND * seconds))
    started.record()
    work()
    ended.record()
    torch.cuda.synchronize(card)
    busy = min(1.0, started.elapsed_time(ended) / 1000 / seconds)
    peak = torch.cuda.max_memory_allocated(card)
    return replace(finding, images_a_second=images / seconds, busy=busy, peak_bytes=peak)
