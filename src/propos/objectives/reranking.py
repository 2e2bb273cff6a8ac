"""Neighbours in a batch that have their own neighbours in common, and which images lie between clusters (CoNR)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

ROUNDS = 2  # in which images take over the neighbours of their nearest
TIE = 1e-5  # of the cosine, so that of two images with the same surroundings the nearer comes first


def reranked(keys: Float[Tensor, "B D"], count: int, wide: int) -> Int[Tensor, "B count"]:
    """Return for each image those of the batch whose surroundings are most like its own, itself mostly the first.

    A_ij is 1 where j is among the `count` nearest of i by cosine, i itself included, and 0 elsewhere. Then, twice,
    A ← A + Aᵀ; A_i ← Σ_j cos²(z_i, z_j) A_j over the `wide` nearest j of i; rows are made unit vectors. Returned are
    the `count` with the largest A_i·A_j, of equals the nearest; in a batch of fewer images, all.
    """
    unit = F.normalize(keys.detach(), dim=1)
    cosines = unit @ unit.T
    closeness, nearest = cosines.topk(min(count, len(unit)), dim=1)
    around = torch.zeros_like(cosines).scatter(1, nearest, 1.0)
    weights = torch.zeros_like(cosines).scatter(1, nearest[:, :wide], closeness[:, :wide].square())
    for _ in range(ROUNDS):
        around = F.normalize(weights @ (around + around.T), dim=1)
    return (around @ around.T + TIE * cosines).topk(nearest.shape[1], dim=1).indices


def inside_clusters(
    keys: Float[Tensor, "B D"], labels: Int[Tensor, " B"], prototypes: Float[Tensor, "K D"], share: float
) -> Bool[Tensor, " B"]:
    """Return which images are a share of the batch that lies least between clusters.

    By the distance from the prototype of their own cluster over that from the nearest other one. Images labelled -1
    are never among them.
    """
    cosines = F.normalize(keys.detach(), dim=1) @ F.normalize(prototypes, dim=1).T
    distances = (2 - 2 * cosines).clamp(min=0).sqrt()
    place = labels.clamp(min=0)[:, None]
    own, others = distances.gather(1, place)[:, 0], distances.scatter(1, place, torch.inf)
    ratios = own / others.min(dim=1).values.clamp(min=torch.finfo(own.dtype).tiny)
    known = labels >= 0
    ranks = torch.where(known, ratios, torch.inf).argsort(stable=True).argsort()
    return known & (ranks < int(share * len(labels)))
