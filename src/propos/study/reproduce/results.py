"""Results of the cells of a reproduction, for tables and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from propos.runner.batch import finished_run
from propos.runs import Run
from propos.study.reproduce.budgets import Budget, Task, task
from propos.study.reproduce.cells import Cell, Setup
from propos.study.reproduce.elements import NOT_FOUND, NOT_YET, Ours
from propos.study.reproduce.images import STAND_IN
from propos.study.reproduce.items import NAMES, Item
from propos.study.reproduce.paths import ReproducePaths

Measures = Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """An item's cells with their results."""

    item: Item
    seeds: int
    budget: Budget
    paths: ReproducePaths

    @cached_property
    def tasks(self) -> dict[Cell, Task]:
        """Its cells as the budget has them trained."""
        return {cell: task(cell, self.budget, self.paths.root) for cell in self.item.cells(self.seeds)}

    @cached_property
    def runs(self) -> dict[Cell, Run]:
        """Its finished runs."""
        return {
            cell: run for cell, each in self.tasks.items() if (run := finished_run(self.paths.run(each))) is not None
        }

    def cells(self, setup: Setup) -> list[Cell]:
        """Return the cells of a set-up, a seed each."""
        return [cell for cell in self.tasks if cell.setup == setup]

    def missing_reason(self, setup: Setup) -> str:
        """Return why a set-up has no numbers."""
        return NOT_YET if any(self.tasks[cell].available for cell in self.cells(setup)) else NOT_FOUND

    def score(self, setup: Setup, name: str, scale: float = 100.0) -> Ours:
        """Return what the last E-step measured, a seed each, in percent."""
        return self._ours(setup, (scale * value for value in self.by_seed(setup, name).values()))

    def by_seed(self, setup: Setup, name: str) -> dict[int, float]:
        """Return what the last E-step measured, by seed, as it was measured."""
        last = {c.seed: self.runs[c].history[-1]["measures"].get(name) for c in self.cells(setup) if c in self.runs}
        return {seed: float(value) for seed, value in last.items() if value is not None}

    def per_run(self, setup: Setup, take: Callable[[Run], float]) -> Ours:
        """Return something of each finished run, a seed each."""
        return self._ours(setup, (take(self.runs[cell]) for cell in self.cells(setup) if cell in self.runs))

    def measured(self, setup: Setup, measurement: str, *keys: str, scale: float = 100.0) -> Ours:
        """Return what was measured afterwards, a seed each."""
        found = (_inside(self.measurement(cell, measurement), keys) for cell in self.cells(setup))
        return self._ours(setup, (None if value is None else scale * value for value in found))

    def _ours(self, setup: Setup, values: Iterable[float | None]) -> Ours:
        kept = tuple(value for value in values if value is not None)
        return Ours(kept, self.missing_reason(setup), len(self.cells(setup)), self._stands_in(setup))

    def measurement(self, cell: Cell, name: str) -> dict[str, Any] | None:
        """Return all of what was measured on a cell afterwards, or nothing."""
        path = self.paths.measurement(self.tasks[cell], name)
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def curve(self, setup: Setup, name: str) -> dict[int, list[float]]:
        """Return a measure over training: by epoch, the values of all seeds."""
        curve: dict[int, list[float]] = {}
        for cell in self.cells(setup):
            for record in self.runs[cell].history if cell in self.runs else ():
                value = (record["measures"] or {}).get(name)
                if value is not None:
                    curve.setdefault(record["epoch"], []).append(float(value))
        return curve

    def head(self, setup: Setup) -> str:
        """Return a column's title for a set-up's images, with the name of a stand-in."""
        name = NAMES.get(setup.set, setup.set)
        return f"{name} (stand-in: {STAND_IN})" if self._stands_in(setup) else name

    def _stands_in(self, setup: Setup) -> bool:
        return any(self.tasks[cell].images.stand_in for cell in self.cells(setup))

    @property
    def seconds(self) -> float:
        """The total training time of the finished cells."""
        return sum(run.info.seconds for run in self.runs.values())


def _inside(tree: Any, keys: Iterable[str]) -> float | None:
    for key in keys:
        if not isinstance(tree, dict) or key not in tree:
            return None
        tree = tree[key]
    return None if tree is None else float(tree)
