"""Initial centres for k-means from images that are averaged with their nearest neighbours.

An average is nearer to the centre of its class than the image, so fewer clusters mix two classes. K-means then
continues with the images themselves: the result is a fixed point on them, and new images can be assigned to it.

Of several results, the one with the highest neighbour purity is used, averaged over clusters. Inertia would prefer to
split a large class to separating two small ones (docs/pretrained.md).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.inverted_file import nearest_neighbours
from propos.clustering.kmeans import spherical_kmeans

MOST = 4096  # points; of more, a sample is enough to find initial centres
POINTS_A_CLUSTER = 32  # in the sample, or more than that
NEAR = 20  # neighbours of a point for neighbour purity


def averaged(points: Float[Tensor, "N D"], nearest: int) -> Float[Tensor, "N D"]:
    """Return each unit vector averaged with its nearest neighbours and normalised."""
    places = nearest_neighbours(points, nearest)
    return F.normalize(points + points[places].sum(dim=1), dim=1)


def neighbour_purity(labels: Int[Tensor, " N"], near: Int[Tensor, "N n"], clusters: int) -> float:
    """Return the share of points' neighbours that are in the same cluster, averaged over clusters.

    1 minus it is the normalised cut of the neighbour graph (Shi and Malik 2000), divided by the number of clusters.
    """
    shares = (labels[near] == labels[:, None]).double().mean(dim=1)
    sums = shares.new_zeros(clusters).index_add_(0, labels, shares)
    return float((sums / torch.bincount(labels, minlength=clusters).clamp(min=1)).mean())


def starting_sample(count: int, clusters: int, generator: torch.Generator) -> Int[Tensor, " M"]:
    """Return the positions of all points, or of a random sample if there are more than initial centres need."""
    most = max(MOST, POINTS_A_CLUSTER * clusters)
    return torch.arange(count) if count <= most else torch.randperm(count, generator=generator)[:most]


def start_from_averages(
    points: Float[Tensor, "N D"], clusters: int, nearest: int, restarts: int, generator: torch.Generator
) -> Float[Tensor, "K D"]:
    """Return centres found from averaged points: of several starts, those with the highest neighbour purity.

    In every other start each direction is weighted by its standard deviation, which partly undoes whitening.
    """
    points = F.normalize(points[starting_sample(len(points), clusters, generator).to(points.device)].float(), dim=1)
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
