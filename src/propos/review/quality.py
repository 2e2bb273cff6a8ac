"""A statement about how many of a run's labels are right, from the answers of its audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from propos.common.plurals import counted
from propos.evaluation.intervals import Strata, wrong_interval
from propos.runs import JUNK, Run
from propos.runs.audit import NOT_RIGHT, RIGHT, UNANSWERED, Audit, draw_images, read_audit
from propos.runs.corrections import MOVED, REVIEWED, WRONG

SKIPPED_COSTS = 3  # answers that a skipped image outweighs
TARGETS = (0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001)  # half widths


@dataclass(frozen=True)
class Share:
    """The share of right labels among some images: an interval, and the answers that it rests on."""

    low: float
    high: float
    answers: int
    images: int  # among which the answers were drawn

    def __str__(self) -> str:
        """Return the interval in per cent, rounded outwards, or the share where it is known."""
        if self.low == self.high:
            return f"{np.floor(1000 * self.low + 1e-9) / 10:g}%"
        digits = 0 if self.high - self.low >= 0.02 else 1
        scale = 100 * 10**digits
        low, high = (int(np.floor(self.low * scale + 1e-9)), int(np.ceil(self.high * scale - 1e-9)))
        return f"{low / 10**digits:.{digits}f}–{high / 10**digits:.{digits}f}%"

    @property
    def basis(self) -> str:
        """The answers that the share rests on, in words."""
        return f"all {self.images:,} checked" if self.answers == self.images else counted(self.answers, "answer")

    @property
    def stated(self) -> str:
        """The interval's level, unless there is nothing to estimate, and the answers."""
        return self.basis if self.answers == self.images else f"95%, {self.basis}"


@dataclass(frozen=True)
class Quality:
    """The share of right labels in a run and in each of its clusters, and what more answers would bring."""

    share: Share
    clusters: dict[int, Share]
    drawn: int
    skipped: int  # drawn images without an answer, before others with one
    more: int | None  # answers until the interval is about `target` to either side; None: it cannot shrink
    target: float


def audit_state(run: Run, count: int = 0) -> dict[str, Any]:
    """Return for the page the drawn images, after drawing up to `count`, and what is known from the answers."""
    audit = draw_images(run, count) if count > 0 else read_audit(run)
    if audit is None:
        return {"drawn": [], "lines": []}
    drawn = zip(audit.rows.tolist(), audit.cluster[audit.rows].tolist(), strict=True)
    return {"drawn": list(drawn), "lines": describe_quality(run, measure_quality(run, audit))}


def describe_quality(run: Run, quality: Quality | None) -> list[str]:
    """Return the intervals, the least certain cluster first, and what more answers would bring, as lines."""
    chosen = int((run.corrected.how == REVIEWED).sum())
    images = counted(chosen, "image")
    note = [f"Not counted: {images} that people chose to confirm; such images are not representative."] * (chosen > 0)
    if quality is None:
        return ["No answers yet.", *note]
    names = run.corrected.names()
    lines = [f"Labels are {quality.share} right ({quality.share.stated})."]
    for number, share in sorted(quality.clusters.items(), key=lambda each: each[1].low):
        name = names.get(number)
        title = f"cluster {number}" if name is None else f"{name} ({number})"
        lines.append(f"   {title}: {share} ({share.basis})")
    if quality.skipped:
        lines.append(
            f"{counted(quality.skipped, 'image')} skipped: counted as right in the upper bound, wrong in the lower."
        )
    if quality.more is not None:
        lines.append(f"About {quality.more:,} more answers bring it to ±{100 * quality.target:g}.")
    return [*lines, *note]


def measure_quality(run: Run, audit: Audit) -> Quality | None:
    """Return how many labels are right now; None before the first answer.

    A skipped image counts as right in one end of the interval and as wrong in the other. Images that were corrected
    since the draw were wrong then and are right now. Images moved into a cluster that was made since the draw may have
    been right then.
    """
    answers = audit.answers(run)
    used = _longest_use(answers)
    if used == 0:
        return None
    state = _State(run, audit, audit.rows[:used], answers[:used])
    share = state.share()
    assert share is not None
    known = {each.id: state.share(each.id) for each in run.corrected.clusters}
    clusters = {number: found for number, found in known.items() if found is not None}
    half = (share.high - share.low) / 2
    target = next((each for each in TARGETS if each < 0.95 * half), None)
    population = int((audit.cluster != JUNK).sum())
    more = None if target is None else _answers_needed(share.answers, half, target, population)
    skipped = int((answers[:used] == UNANSWERED).sum())
    return Quality(share, clusters, len(audit.rows), skipped, more, target or 0.0)


def _longest_use(answers: Int[np.ndarray, " n"]) -> int:
    """Return how many of the first drawn images to use: answers beyond many skipped images cost more than they tell.

    It depends on where answers are missing, never on what they say.
    """
    worth = np.cumsum(np.where(answers == UNANSWERED, -SKIPPED_COSTS, 1))
    return int(worth.argmax()) + 1 if len(worth) and worth.max() > 0 else 0


def _answers_needed(answers: int, half: float, target: float, population: int) -> int | None:
    """Return how many more answers shrink an interval: its width falls with √(1/n − 1/N)."""
    wanted = 1 / population + (target / half) ** 2 * (1 / answers - 1 / population)
    more = int(np.ceil(1 / wanted)) - answers
    return more if more > 0 else None


class _State:
    """All images as they were when drawn and as they are now, and the answers."""

    def __init__(self, run: Run, audit: Audit, rows: Int[np.ndarray, " n"], answers: Int[np.ndarray, " n"]) -> None:
        corrected = run.corrected
        self.cluster, self.now, self.how = audit.cluster, corrected.table.cluster, corrected.how
        self.whole = audit.whole(run)
        self.answer = np.full(len(self.now), UNANSWERED)
        self.used = np.zeros(len(self.now), bool)
        self.answer[rows], self.used[rows] = answers, True
        moved = (self.whole != self.now) & (self.how == MOVED)
        known = np.isin(self.now, self.whole)  # their cluster was there when the images were drawn
        self.fixed = (self.whole != self.now) & ((self.now == JUNK) | (moved & known) | (self.answer == NOT_RIGHT))
        self.perhaps_fixed = moved & ~self.fixed
        self.unknown = (self.whole != self.now) & ~self.fixed & ~self.perhaps_fixed

    def share(self, cluster: int | None = None) -> Share | None:
        """Return the share of right labels in a cluster, or in all; None if there is no answer."""
        drawn = self.cluster != JUNK if cluster is None else (self.cluster != JUNK) & (self.whole == cluster)
        answers = int((drawn & (self.answer != UNANSWERED)).sum())
        if answers == 0:
            return None
        least, most = self._wrong_when_drawn(drawn)
        fixed, perhaps = int((drawn & self.fixed).sum()), int((drawn & self.perhaps_fixed).sum())
        still = int((drawn & (self.whole == self.now) & (self.how == WRONG)).sum())
        least = max(still, least - fixed - perhaps)
        most = max(still, most - fixed) + int((drawn & self.unknown).sum())
        images = max(1, int((self.now != JUNK if cluster is None else self.now == cluster).sum()))
        return Share(max(0.0, 1 - most / images), max(0.0, 1 - least / images), answers, int(drawn.sum()))

    def _wrong_when_drawn(self, among: Bool[np.ndarray, " N"]) -> tuple[int, int]:
        """Return the smallest and the largest number of wrong labels when the images were drawn."""
        ids = np.unique(self.cluster[among])

        def strata(wrong: Bool[np.ndarray, " N"]) -> Strata:
            counted = (among, among & self.used, among & self.used & wrong)
            size, drawn, bad = (
                np.bincount(np.searchsorted(ids, self.cluster[each]), minlength=len(ids)) for each in counted
            )
            return Strata(size, drawn, bad)

        low = wrong_interval(strata(self.answer == NOT_RIGHT))
        if not (among & self.used & (self.answer == UNANSWERED)).any():
            return low
        return low[0], wrong_interval(strata(self.answer != RIGHT))[1]
