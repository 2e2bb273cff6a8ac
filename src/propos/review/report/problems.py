"""Images that a person should check: outliers, duplicates, bursts, and files that could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from propos.review.report.robust import MAD_TO_STD
from propos.review.report.similar import Similar
from propos.runs import JUNK, ImageTable

OUTLYING = 3.5  # robust standard deviations beyond the middle of the cluster's distances
LOW = 0.5  # a confidence below which other clusters together weigh more
MOST_LISTED = 1_000


@dataclass(frozen=True)
class Problems:
    """Rows of the run's table, the worst first, and the counts before lists were cut."""

    outliers: list[int]
    exact: list[list[int]] = field(default_factory=list)
    near: list[list[int]] = field(default_factory=list)
    bursts: list[list[int]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, list[int]] = field(default_factory=dict)  # images by their fault


def find_problems(
    table: ImageTable,
    similar: Similar,
    unreadable: list[tuple[str, str]],
    faults: Mapping[str, list[int]] = MappingProxyType({}),
) -> Problems:
    """Collect problems, each list cut to a length that a person can check; low confidences are only counted."""
    kept = table.cluster != JUNK  # junk has been checked already
    outliers = find_outliers(table.cluster, table.distance)
    outliers = outliers[kept[outliers]]
    lists: dict[str, Sized] = {
        "outliers": outliers,
        "exact": similar.exact,
        "near": similar.near,
        "bursts": similar.bursts,
        "unreadable": unreadable,
    }
    return Problems(
        outliers=outliers[:MOST_LISTED].tolist(),
        exact=similar.exact[:MOST_LISTED],
        near=similar.near[:MOST_LISTED],
        bursts=similar.bursts[:MOST_LISTED],
        unreadable=unreadable[:MOST_LISTED],
        faults={kind: images[:MOST_LISTED] for kind, images in faults.items()},
        counts={
            **{name: len(images) for name, images in (*lists.items(), *faults.items())},
            "lowConfidence": int((kept & (table.confidence < LOW)).sum()),
        },
    )


def find_outliers(cluster: Int[np.ndarray, " N"], distance: Float[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
    """Return the images unusually far from their prototype for their cluster, the farthest out first.

    Far is 3.5 robust standard deviations (from the median absolute deviation) beyond the cluster's median.
    """
    score = np.zeros(len(cluster))
    for number in np.unique(cluster):
        members = np.flatnonzero(cluster == number)
        middle = np.median(distance[members])
        spread = MAD_TO_STD * np.median(np.abs(distance[members] - middle))
        if spread > 0:
            score[members] = (distance[members] - middle) / spread
    order = np.argsort(-score, kind="stable")
    return order[: int((score > OUTLYING).sum())]
