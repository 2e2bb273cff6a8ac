"""A start for k-means from images that were averaged with those nearest to them.

An average lies nearer to the middle of its kind than the image does, so that fewer clusters straddle two kinds. K-means
then goes on with the images themselves: what it ends with is a fixed point of theirs, and new images fit into it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from propos.clustering.kmeans import spherical_kmeans
from propos.clustering.neighbours import nearest_neighbours

MOST = 8192  # of more points a sample says as well where clusters begin


def averaged(points: Float[Tensor, "N D"], nearest: int) -> Float[Tensor, "N D"]:
    """Return each unit vector averaged with those nearest to it, of length one again."""
    places = nearest_neighbours(points, nearest)
    return F.normalize(points + points[places].sum(dim=1), dim=1)


def start_from_averages(
    points: Float[Tensor, "N D"], clusters: int, nearest: int, restarts: int, generator: torch.Generator
) -> Float[Tensor, "K D"]:
    """Return a centre for each cluster of the averaged points: the mean of the points themselves that are in it."""
    if len(points) > max(MOST, 32 * clusters):
        points = points[torch.randperm(len(points), generator=generator)[: max(MOST, 32 * clusters)].to(points.device)]
    points = F.normalize(points.float(), dim=1)
    labels = spherical_kmeans(averaged(points, nearest), clusters, restarts, generator).labels
    sums = points.new_zeros((clusters, points.shape[1])).index_add_(0, labels, points)
    return F.normalize(sums, dim=1)
