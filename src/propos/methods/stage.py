"""Stages: the parts of a run, each with an optimiser and a schedule of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Rate:
    """The learning rate of a module, relative to the schedule's."""

    scale: float = 1.0
    constant: bool = False  # stay at the schedule's peak
    first_epoch: int = 0  # of the stage; before it there is neither a step nor momentum


@dataclass(frozen=True)
class Start:
    """The first epoch of a loss that does not act from the start of its stage, and the setting that moves it."""

    epoch: int  # of the stage
    change: Literal["lower", "raise"]  # to start earlier
    setting: str  # one of the method's own, or dotted: one that all methods share

    def key(self, method: str) -> str:
        """Return the setting as `--set` takes it."""
        return self.setting if "." in self.setting else f"{method}.{self.setting}"


@dataclass(frozen=True)
class Stage:
    """A part of training with an optimiser and a schedule of its own."""

    name: str = "train"
    share: float = 1.0  # of the run's epochs, relative to the other stages' shares
    trains: tuple[str, ...] | None = None  # submodules by dotted name, the others are frozen; None: everything
    train: Mapping[str, Any] = field(default_factory=dict)  # overrides of the `train` settings
    rates: Mapping[str, Rate] = field(default_factory=dict)  # learning rates of submodules by dotted name
    first_clusters: int | None = None  # the first epoch of the stage that reads cluster assignments; None: none does
    starts: Mapping[str, Start] = field(default_factory=dict)  # of losses that start later than the stage
    tables_every: int | None = None  # epochs between calls of `make_tables`; 0: only at the start, None: never
    decides: Literal["k-means", "head"] = "k-means"  # what assigns images to clusters
