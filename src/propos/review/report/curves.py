"""Curves of losses and measures over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_POINTS = 1_000  # of a curve; a screen has no more columns


@dataclass(frozen=True)
class Chart:
    """Some curves that share an axis; a missing value is None."""

    title: str
    caption: str
    curves: dict[str, list[float | None]]


def charts(history: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[Chart]]:
    """Return the epochs shown and the charts that are not empty."""
    records = thinned(history)
    losses, measures = [record["losses"] for record in records], [record["measures"] for record in records]
    terms = list(dict.fromkeys(name for each in losses for name in each))
    drawn = [
        _chart(losses, "Losses", "The weighted sum, which training minimises, and each term.", terms),
        Chart(
            "Spread of the embeddings",
            "1: uniform on the sphere, 0: collapsed.",
            {"spread": [_ratio(each) for each in measures]},
        ),
        _chart(
            measures,
            "Scores",
            "Agreement with the labels, which training does not use.",
            ["nmi", "ari", "ami", "accuracy"],
        ),
        _chart(
            measures, "Images that moved", "Share of images that changed cluster since the previous E-step.", ["churn"]
        ),
        _chart(
            measures, "Balance", "Size of the smallest cluster over the largest: 1 is balanced.", ["imbalance_ratio"]
        ),
        _chart(
            measures,
            "Cluster sizes",
            "Images in the smallest and in the largest cluster.",
            ["smallest_cluster", "largest_cluster"],
        ),
    ]
    full = [chart for chart in drawn if any(value is not None for curve in chart.curves.values() for value in curve)]
    return [int(record["epoch"]) for record in records], full


def thinned(history: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return at most 1,000 records, evenly chosen, the first and the last among them."""
    if len(history) <= MOST_POINTS:
        return list(history)
    return [history[int(place)] for place in np.linspace(0, len(history) - 1, MOST_POINTS).round()]


def warnings_of(history: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Return each warning with its epoch."""
    return [(record["epoch"], warning["text"]) for record in history for warning in record.get("warnings", [])]


def _chart(lines: Sequence[Mapping[str, Any]], title: str, caption: str, keys: Sequence[str]) -> Chart:
    curves = {key: [_number(line.get(key)) for line in lines] for key in keys}
    return Chart(title, caption, {key: curve for key, curve in curves.items() if any(v is not None for v in curve)})


def _ratio(measures: Mapping[str, Any]) -> float | None:
    spread, even = _number(measures.get("uniformity_std")), _number(measures.get("uniformity_reference"))
    return None if spread is None or not even else spread / even


def _number(value: Any) -> float | None:
    """Return a finite number; a page cannot hold NaN."""
    if not isinstance(value, int | float) or not np.isfinite(value):
        return None
    return float(f"{value:.5g}")
