"""The parts of a written item: tables of our numbers next to the paper's, and the data of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from propos.study.figures import Chart, Map, Pictures, TextTable
from propos.study.reproduce.paper import PaperNumber

NOT_FOUND = "data not found"
NOT_YET = "not run yet"
QUOTED = "quoted"  # the paper's number alone
POINTS = 2.0  # how far ours may be from a number that the paper prints without a standard deviation


@dataclass(frozen=True)
class Ours:
    """Our numbers for one cell of a table, one per seed, or the reason why there are none."""

    values: tuple[float, ...] = ()
    why: str = NOT_YET
    requested: int = 0  # number of seeds
    stand_in: bool = False  # other images than the paper's: not comparable

    @property
    def mean(self) -> float | None:
        """Their mean."""
        return fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """Their standard deviation, for two values or more."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Entry:
    """One cell of a table: our numbers and the paper's."""

    ours: Ours | None  # None: quoted from the paper, never run
    paper: PaperNumber | None

    @property
    def tolerance(self) -> float | None:
        """The paper's standard deviation, else 2 points; it does not depend on how far our seeds spread."""
        if self.paper is None:
            return None
        return POINTS if self.paper.sd is None else self.paper.sd

    @property
    def within(self) -> bool | None:
        """Whether our mean is within the tolerance of the paper's, at the paper's one decimal; None: not comparable."""
        if self.ours is None or self.ours.mean is None or self.ours.stand_in or self.paper is None:
            return None
        assert self.tolerance is not None
        return round(abs(self.ours.mean - self.paper.value), 1) <= self.tolerance


@dataclass(frozen=True)
class Column:
    """A column of a table: the data set, with the name of its stand-in if any, and the score."""

    group: str
    name: str


@dataclass(frozen=True)
class Table:
    """Numbers by method and column."""

    columns: Sequence[Column]
    rows: Sequence[tuple[str, Sequence[Entry]]]
    digits: int = 1
    head: str = "method"


Part = Table | TextTable | Chart | Map | Pictures
Kind = Literal["table", "figure"]


@dataclass(frozen=True)
class Assembled:
    """An item as it is written: its parts, the settings that were scaled down, and the training time of its cells."""

    id: str
    title: str
    parts: Sequence[Part]
    notes: Sequence[str] = field(default_factory=tuple)
    scaled: Sequence[str] = field(default_factory=tuple)
    cells: tuple[int, int] = (0, 0)  # finished, and all
    seconds: float = 0.0
