"""What an item is made of when it is written down: tables of numbers beside the paper's, and what figures draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from propos.study.figures import Chart, Map, Pictures, Words
from propos.study.reproduce.paper import Printed

NOT_FOUND = "data not found"
NOT_YET = "not run yet"
QUOTED = "quoted"  # the paper's number alone


@dataclass(frozen=True)
class Ours:
    """Our numbers for one place of a table, one a seed, or why there are none."""

    values: tuple[float, ...] = ()
    why: str = NOT_YET
    asked: int = 0  # seeds that were asked for
    stand_in: bool = False  # of other images than the paper's, so that nothing compares

    @property
    def mean(self) -> float | None:
        """Their mean."""
        return fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """Their standard deviation, from two on."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Entry:
    """One place of a table: what was measured here, and what the paper prints."""

    ours: Ours | None  # nothing where it was never to be run
    paper: Printed | None

    @property
    def within(self) -> bool | None:
        """Whether ours is within two standard deviations, of both together, of the paper's; None if none is known."""
        if self.ours is None or self.ours.mean is None or self.ours.stand_in or self.paper is None:
            return None
        spreads = [sd for sd in (self.ours.sd, self.paper.sd) if sd is not None]
        if not spreads:
            return None
        return abs(self.ours.mean - self.paper.value) <= 2 * math.hypot(*spreads)


@dataclass(frozen=True)
class Column:
    """A column of a table: the images, by the name of what stands in for them too, and the score."""

    group: str
    name: str


@dataclass(frozen=True)
class Table:
    """Numbers by method and column."""

    columns: Sequence[Column]
    rows: Sequence[tuple[str, Sequence[Entry]]]
    digits: int = 1
    head: str = "method"


Part = Table | Words | Chart | Map | Pictures
Kind = Literal["table", "figure"]


@dataclass(frozen=True)
class Assembled:
    """An item as it is written: its parts, what was scaled down, and how many hours its cells took."""

    id: str
    title: str
    parts: Sequence[Part]
    notes: Sequence[str] = field(default_factory=tuple)
    scaled: Sequence[str] = field(default_factory=tuple)
    cells: tuple[int, int] = (0, 0)  # finished, and all
    seconds: float = 0.0
