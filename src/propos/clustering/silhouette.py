"""The silhouette of a clustering: how much nearer points are to their own cluster than to the next; no labels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.points import spans

CHUNK_VALUES = 2**23  # rows and their distances of one chunk, in values
NOTHING = 1e-12  # mean distances below this are rounding errors of identical points


def cosine_silhouette(points: Float[Tensor, "N D"], labels: Int[Tensor, " N"], clusters: int) -> float:
    """Return the mean silhouette of unit vectors, in their own precision."""
    return float(cosine_silhouettes(points, labels, clusters).mean())


def cosine_silhouettes(points: Float[Tensor, "N D"], labels: Int[Tensor, " N"], clusters: int) -> Float[Tensor, " N"]:
    """Return (b − a) / max(a, b) of each unit vector under 1 − cosine.

    a is the mean distance to the other points of the own cluster, b that to the points of the nearest other one; a
    point alone in its cluster counts 0. Cosines are linear, so that the sum of distances to a cluster needs only the
    sum of its points: exact for any number of points, without the distances between them.
    """
    chunks = list(spans(len(points), max(1, CHUNK_VALUES // (clusters + points.shape[1]))))
    sizes = torch.bincount(labels, minlength=clusters).to(points.dtype)
    sums = torch.zeros((clusters, points.shape[1]), dtype=points.dtype, device=points.device)
    for chunk in chunks:
        sums += F.one_hot(labels[chunk], clusters).to(points.dtype).T @ points[chunk]
    return torch.cat([_silhouettes(points[chunk], labels[chunk], sums, sizes) for chunk in chunks])


def _silhouettes(
    points: Float[Tensor, "n D"], labels: Int[Tensor, " n"], sums: Float[Tensor, "K D"], sizes: Float[Tensor, " K"]
) -> Float[Tensor, " n"]:
    """Return the silhouette of each point of a chunk."""
    distances = sizes - points @ sums.T
    own_size = sizes[labels]
    to_itself = (points == 0).all(dim=1).to(points.dtype)  # 0, but a zero vector's product with itself is 0 too
    own = (distances.gather(1, labels[:, None])[:, 0] - to_itself) / (own_size - 1).clamp(min=1)
    others = (distances / sizes.clamp(min=1)).masked_fill(sizes == 0, torch.inf).scatter(1, labels[:, None], torch.inf)
    own, nearest = (F.threshold(distance, NOTHING, 0.0) for distance in (own, others.min(dim=1).values))
    larger = torch.maximum(own, nearest)
    counted = (own_size > 1) & torch.isfinite(nearest) & (larger > 0)
    return torch.where(counted, (nearest - own) / larger, 0.0)
