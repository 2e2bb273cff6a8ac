"""What a cluster is to everyone who reads a run: an identity, a name if it has one, and its images.

Neither a row of prototypes nor a place in a list is a cluster's identity; the one place that says which row stands for
which cluster is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

CONFIDENCE_TEMPERATURE = 0.1  # confidence is the softmax of the cosines to all prototypes over this
NONE: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True)
class Cluster:
    """A cluster of a run; its members are rows of the run's table."""

    id: int
    name: str | None
    members: Int[np.ndarray, " M"]
    description: str | None = None


@dataclass(frozen=True)
class Prototypes:
    """The prototypes, and for each the id of the cluster it stands for."""

    vectors: Float[np.ndarray, "K D"]
    ids: Int[np.ndarray, " K"]

    @classmethod
    def in_order(cls, vectors: Float[np.ndarray, "K D"]) -> Prototypes:
        """Give the ids under which training writes them: that of each row is its number."""
        return cls(vectors, np.arange(len(vectors)))

    def of(self, clusters: Sequence[Cluster]) -> Float[np.ndarray, "C D"]:
        """Return the prototypes of some clusters, in their order."""
        rows = rows_of(np.array([cluster.id for cluster in clusters], dtype=np.int64), self.ids)
        vectors: Float[np.ndarray, "C D"] = self.vectors[rows]
        return vectors


def rows_of(wanted: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"]) -> Int[np.ndarray, " N"]:
    """Return for each wanted id the row of the prototypes, whose ids are given, that stands for its cluster."""
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]


def gather_clusters(
    prototypes: Prototypes,
    cluster: Int[np.ndarray, " N"],
    names: Mapping[int, str] = NONE,
    descriptions: Mapping[int, str] = NONE,
) -> tuple[Cluster, ...]:
    """Return every cluster by ascending id, empty ones included, from the id of each image's cluster."""
    order = np.argsort(cluster, kind="stable")
    ids = np.sort(prototypes.ids)
    first, last = (np.searchsorted(cluster[order], ids, side=side) for side in ("left", "right"))
    return tuple(
        Cluster(number, names.get(number), order[start:end], descriptions.get(number))
        for number, start, end in zip(ids.tolist(), first, last, strict=True)
    )
