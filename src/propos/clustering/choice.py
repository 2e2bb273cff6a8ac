"""Clusters of features on which nothing is trained: ends of two kinds, and the choice between them without labels.

K-means from averaged images is best for kinds of like size. Where one kind is ten times another it cuts the large one
and joins small ones. Average linkage, of averaged images and of a neighbour graph, holds small kinds, and is worse
elsewhere (docs/notebook/photographs.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.kmeans import spherical_kmeans
from propos.clustering.neighbour_averages import MOST, averaged, start_from_averages
from propos.clustering.neighbour_graph import Graph, least_cohesion, neighbour_graph, spectral_embedding
from propos.clustering.separating_prototypes import are_uneven, separating_prototypes

NEAR = 10  # neighbours in the graph
EIGENVECTORS = 2  # a cluster
PARTS, PART_RESTARTS = 5, 4  # small clusters a cluster, and the starts of k-means that finds them


@dataclass(frozen=True)
class Chosen:
    """Centres; where they are held, k-means would move them away from small clusters."""

    centres: Float[Tensor, "K D"]
    held: bool
    together: float | None  # the share of nearest neighbours in the same cluster; None: not measured


def choose_clusters(
    points: Float[Tensor, "N D"], clusters: int, nearest: int, restarts: int, generator: torch.Generator
) -> Chosen:
    """Return the centres of k-means, or those of clusters of very unlike size if their merit is higher.

    More points than MOST are not compared: average linkage needs all distances between them.
    """
    start = start_from_averages(points, clusters, nearest, restarts, generator)
    if not 2 <= clusters <= len(points) // 2 or len(points) > MOST:
        return Chosen(start, held=False, together=None)
    unit = F.normalize(points.float(), dim=1).cpu()
    graph = neighbour_graph(F.normalize(unit * unit.std(dim=0), dim=1), NEAR)
    usual = spherical_kmeans(unit, clusters, 0, generator, previous=start.cpu())
    parts = spherical_kmeans(unit, min(PARTS * clusters, len(unit)), PART_RESTARTS, generator).labels
    best = Chosen(start, held=False, together=_together(graph, usual.labels))
    most = merit(graph, parts, usual.labels, clusters)
    for linked in _linked(unit, clusters, nearest):
        centres = separating_prototypes(unit, linked, clusters)
        if not are_uneven(unit, centres):
            continue
        labels = (unit @ centres.T).argmax(dim=1)
        found = merit(graph, parts, labels, clusters)
        if found > most:
            best, most = Chosen(centres.to(points.device), held=True, together=_together(graph, labels)), found
    return best


def merit(graph: Graph, parts: Int[Tensor, " N"], labels: Int[Tensor, " N"], clusters: int) -> float:
    """Return how pure parts are, plus how well the weakest cluster holds together.

    The first is lower where a kind was cut in two, the second where two were joined.
    """
    return purity_of_parts(labels, parts, clusters) + least_cohesion(graph, labels, clusters)


def purity_of_parts(labels: Int[Tensor, " N"], parts: Int[Tensor, " N"], clusters: int) -> float:
    """Return the share of points in the cluster that holds most of their part, a small cluster of like points."""
    shared = torch.bincount(labels + clusters * parts, minlength=clusters * (int(parts.max()) + 1))
    return float(shared.view(-1, clusters).max(dim=1).values.sum() / len(labels))


def average_linkage(points: Float[Tensor, "N D"], clusters: int) -> Int[Tensor, " N"]:
    """Return the clusters of unit vectors by average linkage of 1 − cosine."""
    from scipy.cluster.hierarchy import fcluster, linkage  # imported only when needed: it takes a second

    upper = np.triu_indices(len(points), 1)
    tree = linkage((1 - points.double() @ points.double().T).numpy()[upper].clip(min=0), "average")
    return torch.from_numpy(np.unique(fcluster(tree, clusters, "maxclust"), return_inverse=True)[1])


def _linked(points: Float[Tensor, "N D"], clusters: int, nearest: int) -> Iterator[Int[Tensor, " N"]]:
    """Yield the clusters of averaged points and of their graph's embedding, unless there are too few unequal points."""
    embedding = spectral_embedding(neighbour_graph(points, NEAR), EIGENVECTORS * clusters)
    for each in (averaged(points, nearest), embedding):
        labels = average_linkage(each, clusters)
        if int(labels.max()) + 1 == clusters:
            yield labels


def _together(graph: Graph, labels: Int[Tensor, " N"]) -> float:
    """Return the share of the graph's edges within a cluster."""
    edges, numbers = graph.tocoo(), labels.cpu().numpy()
    return float(edges.data[numbers[edges.row] == numbers[edges.col]].sum() / edges.data.sum())
