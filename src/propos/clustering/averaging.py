"""A start for k-means from images that were averaged with those nearest to them.

An average lies nearer to the middle of its kind than the image does, so that fewer clusters straddle two kinds. K-means
then goes on with the images themselves: what it ends with is a fixed point of theirs, and new images fit into it.

Of several such ends the one is kept whose images have most of their nearest with them, each cluster counting the same.
The measure of k-means itself would rather cut a large kind in two than keep two small ones apart (docs/pretrained.md).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.kmeans import spherical_kmeans
from propos.clustering.neighbours import nearest_neighbours

MOST = 4096  # of more points a sample says as well where clusters begin
NEAR = 20  # neighbours that are looked for in a point's own cluster


def averaged(points: Float[Tensor, "N D"], nearest: int) -> Float[Tensor, "N D"]:
    """Return each unit vector averaged with those nearest to it, of length one again."""
    places = nearest_neighbours(points, nearest)
    return F.normalize(points + points[places].sum(dim=1), dim=1)


def neighbour_purity(labels: Int[Tensor, " N"], near: Int[Tensor, "N n"], clusters: int) -> float:
    """Return how many of its points' neighbours a cluster holds itself, as a share, in the mean of the clusters.

    One less it is the normalised cut of the graph of neighbours (Shi and Malik 2000), over the number of clusters.
    """
    shares = (labels[near] == labels[:, None]).double().mean(dim=1)
    sums = shares.new_zeros(clusters).index_add_(0, labels, shares)
    return float((sums / torch.bincount(labels, minlength=clusters).clamp(min=1)).mean())


def start_from_averages(
    points: Float[Tensor, "N D"], clusters: int, nearest: int, restarts: int, generator: torch.Generator
) -> Float[Tensor, "K D"]:
    """Return the centres of clusters that began with those of averaged points: of several, the most together.

    In every other start each direction is weighed by its spread, which takes back some of what whitening evened out.
    """
    if len(points) > max(MOST, 32 * clusters):
        points = points[torch.randperm(len(points), generator=generator)[: max(MOST, 32 * clusters)].to(points.device)]
    points = F.normalize(points.float(), dim=1)
    weighed = F.normalize(points * points.std(dim=0), dim=1)
    smooth, near = [averaged(each, nearest) for each in (points, weighed)], nearest_neighbours(points, NEAR)
    best, most = points[:clusters], -1.0
    for turn in range(restarts):
        labels = spherical_kmeans(smooth[turn % 2], clusters, 1, generator).labels
        sums = points.new_zeros((clusters, points.shape[1])).index_add_(0, labels, points)
        found = spherical_kmeans(points, clusters, 0, generator, previous=F.normalize(sums, dim=1))
        together = neighbour_purity(found.labels, near, clusters)
        if together > most:
            best, most = found.centres, together
    return best
