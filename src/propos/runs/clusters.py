"""Clusters of a run: an id, a name if it has one, and its images.

A cluster is identified by its id, never by a row of the prototypes or a position in a list; `Prototypes` maps the two.
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
    above: tuple[tuple[int, str], ...] = ()  # id and name of the named nodes above it in the tree, from the root down


@dataclass(frozen=True)
class Prototypes:
    """The prototypes, and the cluster id of each."""

    vectors: Float[np.ndarray, "K D"]
    ids: Int[np.ndarray, " K"]

    @classmethod
    def in_order(cls, vectors: Float[np.ndarray, "K D"]) -> Prototypes:
        """Return prototypes whose ids are their row numbers, as training writes them."""
        return cls(vectors, np.arange(len(vectors)))

    def of(self, clusters: Sequence[Cluster]) -> Float[np.ndarray, "C D"]:
        """Return the prototypes of some clusters, in their order."""
        rows = rows_of(np.array([cluster.id for cluster in clusters], dtype=np.int64), self.ids)
        vectors: Float[np.ndarray, "C D"] = self.vectors[rows]
        return vectors


def rows_of(wanted: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"]) -> Int[np.ndarray, " N"]:
    """Return the row of each wanted id among the given ids of prototypes."""
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
