"""Cells: the runs of the paper, each a set-up in the paper's terms and a seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Changes = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Setup:
    """A run without its seed: images by name, a recipe, a method, and changes to the recipe."""

    data: str  # a published set, or one of its splits: cifar-10:train
    recipe: str
    method: str = "propos"
    changes: Changes = ()

    @property
    def set(self) -> str:
        """The published set that the images are of."""
        return self.data.partition(":")[0]


@dataclass(frozen=True)
class Cell:
    """A run: a set-up and a seed. Items that need the same cell share it."""

    setup: Setup
    seed: int


def with_seeds(setups: Iterable[Setup], seeds: int) -> list[Cell]:
    """Return the cells of set-ups, each once, seed by seed, so that first results come early."""
    different = list(dict.fromkeys(setups))
    return [Cell(setup, seed) for seed in range(seeds) for setup in different]
