"""The graph of nearest neighbours: a spectral embedding of it, and how well clusters hold together in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.inverted_file import nearest_neighbours

Graph = Any  # a symmetric scipy.sparse.csr_array, whose element types scipy's stubs spell at length

DENSE = 64  # nodes up to which all eigenvalues are computed
SMALLEST = 4  # images of a cluster of which it can be said that it falls apart


def neighbour_graph(points: Float[Tensor, "N D"], near: int) -> Graph:
    """Return the symmetric graph of each unit vector's nearest neighbours; two that choose each other count double."""
    from scipy.sparse import csr_array  # imported only when needed: it takes a second

    places = nearest_neighbours(points, min(near, len(points) - 1)).cpu().numpy()
    count, each = places.shape
    rows = np.repeat(np.arange(count), each)
    chosen = csr_array((np.ones(count * each), (rows, places.ravel())), shape=(count, count))
    return ((chosen + chosen.T) / 2).tocsr()


def spectral_embedding(graph: Graph, dimension: int) -> Float[Tensor, "N d"]:
    """Return unit rows of the graph's leading eigenvectors, each multiplied by its eigenvalue (one step of diffusion).

    See Ng, Jordan and Weiss (2001) and Coifman and Lafon (2006).
    """
    values, vectors = _leading(graph, min(dimension, graph.shape[0] - 1))
    return F.normalize(torch.from_numpy(vectors * values.clip(0, 1)).float(), dim=1)


def least_cohesion(graph: Graph, labels: Int[Tensor, " N"], clusters: int) -> float:
    """Return the smallest spectral gap of a cluster's own graph: near 0 where a cluster falls into two parts.

    The gap is 1 minus the second eigenvalue of the normalised adjacency; by Cheeger's inequality it bounds the cheapest
    cut of the cluster from both sides.
    """
    numbers = labels.cpu().numpy()
    members = (np.flatnonzero(numbers == cluster) for cluster in range(clusters))
    return min((_gap(graph[rows][:, rows]) for rows in members if len(rows) >= SMALLEST), default=1.0)


def _gap(graph: Graph) -> float:
    values, _ = _leading(graph, 2)
    return float(1 - values[1])


def _leading(graph: Graph, count: int) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, "N c"]]:
    """Return the largest eigenvalues of the normalised adjacency, largest first, and their eigenvectors."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    size = graph.shape[0]
    scale = diags_array(1 / np.sqrt(np.maximum(graph.sum(axis=1), 1e-9)))
    normalised = scale @ graph @ scale
    if size <= max(DENSE, 2 * count):
        values, vectors = np.linalg.eigh(normalised.toarray())
    else:
        values, vectors = eigsh(normalised, count, which="LA", v0=np.random.default_rng(0).standard_normal(size))
    order = np.argsort(-values)[:count]
    return values[order], vectors[:, order]
