"""Descriptions of clusters: size, compactness, typical, borderline and find_outliers images, nearest clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from propos.runs import JUNK, Cluster, CorrectedRun, ImageTable, Prototypes

TYPICAL, BORDERLINE, ODD, NEAREST = 12, 24, 24, 5


@dataclass(frozen=True)
class Group:
    """One cluster as the page shows it; images are rows of the run's table, the most representative first."""

    id: int
    name: str | None
    size: int
    tightness: float  # mean cosine between its images and its prototype
    typical: list[int]
    borderline: list[int]
    odd: list[int]
    nearest: list[tuple[int, float]]  # ids of clusters and the cosine of their prototypes
    label: str | None  # the commonest label, and its share
    share: float | None


def describe_groups(clusters: Sequence[Cluster], table: ImageTable, prototypes: Prototypes) -> list[Group]:
    """Describe every cluster, empty ones included."""
    vectors = prototypes.of(clusters)
    likeness = vectors @ vectors.T
    return [
        _describe(cluster, table, _nearest(cluster, clusters, likeness[place]))
        for place, cluster in enumerate(clusters)
    ]


def junk_group(corrected: CorrectedRun) -> Group | None:
    """Return the junk images as one more group; None if there are none."""
    rows = np.flatnonzero(corrected.junk)
    if len(rows) == 0:
        return None
    return _describe(Cluster(JUNK, "Junk", rows), corrected.table, [])


def _nearest(
    cluster: Cluster, clusters: Sequence[Cluster], likeness: Float[np.ndarray, " K"]
) -> list[tuple[int, float]]:
    order = np.argsort(-likeness, kind="stable")
    others = [(clusters[place].id, float(likeness[place])) for place in order if clusters[place].id != cluster.id]
    return others[:NEAREST]


def _describe(cluster: Cluster, table: ImageTable, nearest: list[tuple[int, float]]) -> Group:
    """Describe a cluster from its members, the nearest to the prototype first."""
    members = cluster.members[np.argsort(table.distance[cluster.members], kind="stable")]
    doubtful = members[np.argsort(table.confidence[members], kind="stable")]
    label, share = _commonest(table, members)
    return Group(
        id=cluster.id,
        name=cluster.name,
        size=len(members),
        tightness=float(1 - table.distance[members].mean()) if len(members) else 0.0,
        typical=members[:TYPICAL].tolist(),
        borderline=doubtful[:BORDERLINE].tolist(),
        odd=members[::-1][:ODD].tolist(),
        nearest=nearest,
        label=label,
        share=share,
    )


def _commonest(table: ImageTable, members: Int[np.ndarray, " M"]) -> tuple[str | None, float | None]:
    if table.label is None or len(members) == 0:
        return None, None
    label, count = Counter(table.label[members].tolist()).most_common(1)[0]
    return str(label), count / len(members)
