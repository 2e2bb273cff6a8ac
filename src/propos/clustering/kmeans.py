"""Spherical k-means: k-means++ seeding, Lloyd's iterations by cosine, the best of several restarts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.errors import InputError

MAX_ITERATIONS = 300


@dataclass(frozen=True)
class Clustering:
    """A fixed point of Lloyd's iteration."""

    labels: Int[Tensor, " N"]
    centres: Float[Tensor, "K D"]
    inertia: float  # Σ (1 − cosine to the own centre)
    iterations: int


def spherical_kmeans(
    points: Float[Tensor, "N D"], clusters: int, restarts: int, generator: torch.Generator
) -> Clustering:
    """Cluster points by direction and return the best of several restarts; no cluster is empty."""
    if not torch.isfinite(points).all():
        raise InputError("k-means: the points hold values that are not finite")
    if not 1 <= clusters <= len(points):
        raise InputError(f"k-means: {clusters} clusters of {len(points)} points: choose from 1 to {len(points)}")
    points = F.normalize(points, dim=1)
    runs = [_lloyd(points, _seed(points, clusters, generator)) for _ in range(restarts)]
    return min(runs, key=lambda run: run.inertia)


def assign(points: Float[Tensor, "N D"], centres: Float[Tensor, "K D"]) -> tuple[Int[Tensor, " N"], Tensor]:
    """Return each point's nearest centre and its cosine to all centres."""
    cosines = F.normalize(points, dim=1) @ centres.T
    return cosines.argmax(dim=1), cosines


def _seed(points: Float[Tensor, "N D"], clusters: int, generator: torch.Generator) -> Float[Tensor, "K D"]:
    """Choose the first centres far from each other: k-means++ on 1 − cosine, greedy over a few candidates."""
    candidates = 2 + int(torch.tensor(float(clusters)).log())
    first = torch.randint(len(points), (1,), generator=generator)
    chosen = [points[first]]
    distance = (1 - points @ chosen[0].T)[:, 0].clamp(min=0)
    for _ in range(1, clusters):
        weights = distance.double()
        if weights.sum() <= 0:
            weights = torch.ones_like(weights)
        draws = torch.rand(candidates, generator=generator, dtype=torch.float64).to(points.device) * weights.sum()
        picks = torch.searchsorted(weights.cumsum(0), draws).clamp(max=len(points) - 1)
        closer = torch.minimum(distance[:, None], (1 - points @ points[picks].T).clamp(min=0))
        best = closer.sum(dim=0).argmin()
        distance = closer[:, best]
        chosen.append(points[picks[best]][None])
    return torch.cat(chosen)


def _lloyd(points: Float[Tensor, "N D"], centres: Float[Tensor, "K D"]) -> Clustering:
    labels = torch.full((len(points),), -1, device=points.device)
    iterations = 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        cosines, nearest = (points @ centres.T).max(dim=1)
        nearest = _fill_empty(nearest, cosines, len(centres))
        if torch.equal(nearest, labels):
            break
        labels = nearest
        sums = F.one_hot(labels, len(centres)).to(points.dtype).T @ points
        centres = F.normalize(sums, dim=1)
    inertia = float((1 - (points * centres[labels]).sum(dim=1)).double().sum())
    return Clustering(labels, centres, inertia, iterations)


def _fill_empty(labels: Int[Tensor, " N"], cosines: Float[Tensor, " N"], clusters: int) -> Int[Tensor, " N"]:
    """Give each empty cluster the worst-served point of a cluster that can spare one."""
    sizes = torch.bincount(labels, minlength=clusters)
    empty = (sizes == 0).nonzero()[:, 0]
    if len(empty) == 0:
        return labels
    labels = labels.clone()
    worst_first = cosines.argsort(stable=True)
    taken = iter(worst_first.tolist())
    for cluster in empty.tolist():
        point = next(p for p in taken if sizes[labels[p]] > 1)
        sizes[labels[point]] -= 1
        labels[point] = cluster
        sizes[cluster] += 1
    return labels
