"""What each cluster is like: its size, how tight it is, its typical, borderline and odd images, its neighbours."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from propos.runs import Clusters

TYPICAL, BORDERLINE, ODD, NEAREST = 12, 24, 24, 5


@dataclass(frozen=True)
class Group:
    """One cluster as the page shows it; images are rows of the run's table, the most telling first."""

    number: int
    size: int
    tightness: float  # mean cosine between its images and its prototype
    typical: list[int]
    borderline: list[int]
    odd: list[int]
    nearest: list[tuple[int, float]]  # clusters and the cosine of their prototypes
    label: str | None  # the commonest label, and its share
    share: float | None


def describe_groups(clusters: Clusters, prototypes: Float[np.ndarray, "K D"]) -> list[Group]:
    """Describe every cluster, empty ones included."""
    order = np.lexsort((clusters.distance, clusters.cluster))
    bounds = np.searchsorted(clusters.cluster[order], np.arange(len(prototypes) + 1))
    likeness = prototypes @ prototypes.T
    return [
        _describe(number, order[bounds[number] : bounds[number + 1]], clusters, likeness[number])
        for number in range(len(prototypes))
    ]


def _describe(
    number: int, members: Int[np.ndarray, " M"], clusters: Clusters, likeness: Float[np.ndarray, " K"]
) -> Group:
    """Describe a cluster from its members, the nearest to the prototype first."""
    doubtful = members[np.argsort(clusters.confidence[members], kind="stable")]
    label, share = _commonest(clusters, members)
    others = [int(other) for other in np.argsort(-likeness, kind="stable") if other != number]
    return Group(
        number=number,
        size=len(members),
        tightness=float(1 - clusters.distance[members].mean()) if len(members) else 0.0,
        typical=members[:TYPICAL].tolist(),
        borderline=doubtful[:BORDERLINE].tolist(),
        odd=members[::-1][:ODD].tolist(),
        nearest=[(other, float(likeness[other])) for other in others[:NEAREST]],
        label=label,
        share=share,
    )


def _commonest(clusters: Clusters, members: Int[np.ndarray, " M"]) -> tuple[str | None, float | None]:
    if clusters.label is None or len(members) == 0:
        return None, None
    label, count = Counter(clusters.label[members].tolist()).most_common(1)[0]
    return str(label), count / len(members)
