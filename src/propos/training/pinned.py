"""The images that an E-step keeps in given clusters, by the corrections of an earlier run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.distributed import gather_rows, share, sum_over_processes
from propos.training.corrections import FREE, Corrections

MOST_FIXED = 4_096  # fixed images that others are compared with; of more, an evenly spaced subset
CHUNK = 8_192  # images that are compared with them at a time


def pin_images(
    points: Float[Tensor, "n D"], corrections: Corrections, prototypes: Float[Tensor, "K D"]
) -> Int[Tensor, " n"]:
    """Return the cluster that each of this process's images is pinned to; −1 if it is free."""
    held = pin_neighbours(points, corrections.fixed, prototypes)
    if corrections.part is None or corrections.whole is None:
        return held
    return pin_merged_parts(points, held, corrections.part, corrections.whole, prototypes)


def pin_neighbours(
    points: Float[Tensor, "n D"], fixed: Int[Tensor, " N"], prototypes: Float[Tensor, "K D"]
) -> Int[Tensor, " n"]:
    """Pin the images that are fixed by corrections, and the images near them.

    An image that is nearer to a fixed image than to any prototype is pinned to the cluster of its nearest fixed image.
    So a cluster may have several centres, one for each fixed image, and not only its mean.
    """
    local, holders = fixed[share(len(fixed))].to(points.device), (fixed >= 0).nonzero()[:, 0]
    if len(holders) > MOST_FIXED:
        holders = holders[torch.linspace(0, len(holders) - 1, MOST_FIXED).round().long()]
    if not len(holders):
        return local
    theirs = fixed[holders].to(points.device)
    rows = gather_rows(points, holders.to(points.device), len(fixed))
    followed = []
    for chunk in points.split(CHUNK):
        nearness, nearest = (chunk @ rows.T).max(dim=1)
        followed.append(torch.where(nearness > (chunk @ prototypes.T).amax(dim=1), theirs[nearest], FREE))
    return torch.where(local == FREE, torch.cat(followed), local)


def pin_merged_parts(
    points: Float[Tensor, "n D"],
    held: Int[Tensor, " n"],
    part: Int[Tensor, " N"],
    whole: Int[Tensor, " P"],
    prototypes: Float[Tensor, "K D"],
) -> Int[Tensor, " n"]:
    """Pin the images of merged clusters, in addition to those that are pinned already.

    The mean of two clusters may be far from both. So each part of a merged cluster keeps its own mean, and images that
    are nearer to it than to the prototype of any other cluster are pinned to the merged cluster.
    """
    local, whole = part[share(len(part))].to(points.device), whole.to(points.device)
    members = F.one_hot(local + 1, len(whole) + 1)[:, 1:].to(torch.float64)  # −1: in no part
    places = F.normalize(sum_over_processes(members.T @ points.double()), dim=1).to(points.dtype)
    others = F.one_hot(whole, len(prototypes)) == 0
    kept = []
    for chunk in points.split(CHUNK):
        nearness, nearest = (chunk @ places.T).max(dim=1)
        rival = (chunk @ prototypes.T).masked_fill(~others[nearest], -torch.inf).amax(dim=1)
        kept.append(torch.where(nearness > rival, whole[nearest], FREE))
    return torch.where(held == FREE, torch.cat(kept), held)
