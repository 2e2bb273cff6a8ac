"""Which images have to stay in which cluster in an E-step, by what people said of an earlier run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.distributed import rows_of_all, share, sum_over_processes
from propos.training.corrections import FREE, Corrections

MOST_SPEAKERS = 4_096  # images that speak for others; of more, some from all of them
CHUNK = 8_192  # images at a time that are compared with them


def pin_images(
    points: Float[Tensor, "n D"], corrections: Corrections, prototypes: Float[Tensor, "K D"]
) -> Int[Tensor, " n"]:
    """Return where this process's images have to stay, as far as people's words reach; −1 elsewhere."""
    held = pin_neighbours(points, corrections.fixed, prototypes)
    if corrections.part is None or corrections.whole is None:
        return held
    return pin_merged_parts(points, held, corrections.part, corrections.whole, prototypes)


def pin_neighbours(
    points: Float[Tensor, "n D"], fixed: Int[Tensor, " N"], prototypes: Float[Tensor, "K D"]
) -> Int[Tensor, " n"]:
    """Return where this process's images have to stay: where people put them, or the image that speaks for them.

    An image that a person put somewhere speaks for those that are nearer to it than to any prototype, and to no other
    such image nearer: a cluster is then as many places as people showed, not one mean.
    """
    local, speakers = fixed[share(len(fixed))].to(points.device), (fixed >= 0).nonzero()[:, 0]
    if len(speakers) > MOST_SPEAKERS:
        speakers = speakers[torch.linspace(0, len(speakers) - 1, MOST_SPEAKERS).round().long()]
    if not len(speakers):
        return local
    theirs = fixed[speakers].to(points.device)
    rows = rows_of_all(points, speakers.to(points.device), len(fixed))
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
    """Return where this process's images have to stay, with the clusters that people made one in one.

    The mean of two clusters may lie where neither is. So each part keeps a place of its own, the mean of the images it
    had, and holds those that are nearer to it than to the prototype of any other cluster.
    """
    local, whole = part[share(len(part))].to(points.device), whole.to(points.device)
    members = F.one_hot(local + 1, len(whole) + 1)[:, 1:].to(torch.float64)  # −1: of no part
    places = F.normalize(sum_over_processes(members.T @ points.double()), dim=1).to(points.dtype)
    others = F.one_hot(whole, len(prototypes)) == 0
    kept = []
    for chunk in points.split(CHUNK):
        nearness, nearest = (chunk @ places.T).max(dim=1)
        rival = (chunk @ prototypes.T).masked_fill(~others[nearest], -torch.inf).amax(dim=1)
        kept.append(torch.where(nearness > rival, whole[nearest], FREE))
    return torch.where(held == FREE, torch.cat(kept), held)
