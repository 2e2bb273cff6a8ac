"""Prototypes that hold given clusters: each image is nearest to the prototype of its own.

The means of clusters of very unlike size lose them: the fringe of a large cluster is nearer to the mean of a small one.
Prototypes are means too, in which images that another prototype would take weigh more.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.kmeans import assign
from propos.distributed import sum_over_processes

STEPS = 30
GROWTH = 1.5  # of the weight of an image that another prototype would take, a step
UNEVEN = 0.8  # clusters of a lower evenness are of very unlike size


def separating_prototypes(
    points: Float[Tensor, "n D"], labels: Int[Tensor, " n"], clusters: int, sharded: bool = False
) -> Float[Tensor, "K D"]:
    """Return unit prototypes with as many points as possible nearest to that of their own cluster, as boosting does.

    Every cluster starts with the same weight. With `sharded`, each process passes its part of the points.
    """
    sizes = _total(torch.bincount(labels, minlength=clusters), sharded).clamp(min=1)
    weights = (1 / sizes)[labels].to(points.dtype)
    best, most = points.new_zeros((clusters, points.shape[1])), -1
    for _ in range(STEPS):
        sums = best.new_zeros(best.shape).index_add_(0, labels, points * weights[:, None])
        prototypes = F.normalize(_total(sums, sharded), dim=1)
        kept = (points @ prototypes.T).argmax(dim=1) == labels
        count = int(_total(kept.sum(), sharded))
        if count > most:
            best, most = prototypes, count
        weights = torch.where(kept, weights, weights * GROWTH)
    return best


def hold(
    points: Float[Tensor, "n D"],
    prototypes: Float[Tensor, "K D"],
    fixed: Int[Tensor, " n"] | None = None,
    sharded: bool = False,
) -> tuple[Int[Tensor, " n"], Float[Tensor, "K D"]]:
    """Return the cluster of each point's nearest prototype, and the prototypes.

    Points that are `fixed` (−1: free) are in the cluster of that number, and prototypes move so that they hold it.
    """
    labels = assign(points, prototypes)[0]
    if fixed is None:
        return labels, prototypes
    labels = torch.where(fixed >= 0, fixed, labels)
    return labels, separating_prototypes(points, labels, len(prototypes), sharded)


def are_uneven(points: Float[Tensor, "n D"], prototypes: Float[Tensor, "K D"], sharded: bool = False) -> bool:
    """Return whether clusters of the nearest prototypes are of very unlike size: k-means would lose small ones."""
    sizes = torch.bincount(assign(points, prototypes)[0], minlength=len(prototypes))
    return evenness(_total(sizes, sharded)) < UNEVEN


def evenness(sizes: Int[Tensor, " K"]) -> float:
    """Return the exponential of the entropy of the clusters' shares, divided by their number: 1 if all are equal."""
    return float(torch.special.entr(sizes.double() / sizes.sum()).sum().exp() / len(sizes))


def _total(values: Tensor, sharded: bool) -> Tensor:
    return sum_over_processes(values) if sharded else values
