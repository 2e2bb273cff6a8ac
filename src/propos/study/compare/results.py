"""Results of a comparison: a row per cell, and each method's mean and standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
from jaxtyping import Int

from propos.evaluation import scores
from propos.runs import Run
from propos.study.compare.request import Cell

SCORES = {"accuracy": "accuracy", "nmi": "NMI", "ari": "ARI", "ami": "AMI"}
BY_HEAD = {"head_accuracy": "accuracy", "head_nmi": "NMI"}
ABOUT = {
    "spread": "spread",
    "balance": "balance",
    "epochs": "epochs",
    "seconds": "seconds",
    "processor_seconds": "processor seconds",
    "megabytes": "MB",
}
DIGITS = {"epochs": 0, "seconds": 1, "processor_seconds": 1, "megabytes": 0}


@dataclass(frozen=True)
class Row:
    """A finished cell: its numbers by name; what was not measured is not there."""

    cell: Cell
    numbers: Mapping[str, float]
    folder: str
    clusters: Int[np.ndarray, " N"]


def read_row(cell: Cell, run: Run, folder: str) -> Row:
    """Read the numbers of a finished run: of its last E-step, and what it took."""
    last, info = run.history[-1]["measures"], run.info
    numbers = {name: float(last[name]) for name in (*SCORES, *BY_HEAD) if last.get(name) is not None}
    numbers |= {
        "spread": last["uniformity_std"] / last["uniformity_reference"],
        "balance": last["imbalance_ratio"],
        "epochs": float(len(run.history) - 1),
        "seconds": info.seconds,
        "processor_seconds": info.processor_seconds,
    }
    if info.memory is not None:
        numbers["megabytes"] = info.memory / 1e6
    return Row(cell, numbers, folder, run.table.cluster)


@dataclass(frozen=True)
class Summary:
    """A method's numbers over its seeds."""

    method: str
    rows: Sequence[Row]

    def values(self, name: str) -> list[float]:
        """Return one number of each seed."""
        return [row.numbers[name] for row in self.rows if name in row.numbers]

    @property
    def means(self) -> dict[str, tuple[float, float | None]]:
        """Mean and standard deviation of every number."""
        names = dict.fromkeys(name for row in self.rows for name in row.numbers)
        found = {name: self.values(name) for name in names}
        return {name: (fmean(each), stdev(each) if len(each) > 1 else None) for name, each in found.items()}

    @property
    def agreement(self) -> float | None:
        """Return the mean NMI between two seeds' clusters, which needs no labels."""
        pairs = list(combinations(self.rows, 2))
        if not pairs:
            return None
        return fmean(float(scores(one.clusters, other.clusters)["nmi"]) for one, other in pairs)


def summaries(methods: Sequence[str], rows: Sequence[Row]) -> list[Summary]:
    """Return the numbers of each method."""
    return [Summary(method, [row for row in rows if row.cell.method == method]) for method in methods]
