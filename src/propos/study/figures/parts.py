"""Parts of tables and figures: text, lines, dots, maps and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TextTable:
    """A plain table of words."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Series:
    """A line of a chart: its points, and how far they spread over seeds."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    sd: Sequence[float | None] = ()


@dataclass(frozen=True)
class Chart:
    """Lines over one axis; `ticks` are words for its places, evenly spaced."""

    title: str
    across: str
    series: Sequence[Series]
    ticks: Sequence[str] = ()
    level: tuple[str, float] | None = None  # a line to compare with


@dataclass(frozen=True)
class Map:
    """Dots in the unit square, coloured by group; some are ringed."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    group: Sequence[int]
    ringed: Sequence[int] = ()


@dataclass(frozen=True)
class Pictures:
    """Rows of small pictures, PNG files as base64, with a word above each column and before each row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Dots:
    """A row of dots for each name, one a value, with their mean and how far they spread."""

    title: str
    rows: Sequence[tuple[str, Sequence[float]]]
    from_zero: bool = False  # so that lengths compare


Drawn = Chart | Map | Pictures | Dots
