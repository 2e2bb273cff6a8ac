"""Images whose nearest neighbours in the batch have the same cluster, and a pull among them (DCBoost)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.losses.prototypes import mean_of_present, membership

NEIGHBOURS = 50  # at most, in the batch


def confident_labels(
    embeddings: Float[Tensor, "B D"], labels: Int[Tensor, " B"], most: int = NEIGHBOURS
) -> Int[Tensor, " B"]:
    """Return the labels of images whose k nearest neighbours by cosine all have the same label; -1 for others.

    k is chosen from 1 … `most`: the one for which k times the number of such images is largest, the smallest of ties.
    """
    unit = F.normalize(embeddings.detach(), dim=1)
    cosines = unit @ unit.T
    cosines.fill_diagonal_(-torch.inf)
    count = min(most, len(unit) - 1)
    nearest = cosines.topk(count, dim=1).indices
    alike = (labels[nearest] == labels[:, None]) & (labels >= 0)[:, None]
    agreed = alike.long().cumprod(dim=1)
    counted = torch.arange(1, count + 1, device=labels.device)
    # k is subtracted from a multiple of the score that exceeds it, so that no two values are equal.
    best = (agreed.sum(dim=0) * counted * (count + 1) - counted).argmax()
    return torch.where(agreed.index_select(1, best[None])[:, 0].bool(), labels, -1)


def confident_pull(
    online: Float[Tensor, "B D"], target: Float[Tensor, "B D"], labels: Int[Tensor, " B"], clusters: int | None = None
) -> Float[Tensor, ""]:
    """Pull the online images of each cluster to its targets, among images whose neighbours in the batch agree.

    ½ · mean_c Σ_{i,j ∈ c} ‖z_i − z'_j‖² / (‖S_c‖ ‖S'_c‖), z unit vectors and S_c their sum over the cluster; it equals
    mean_c [n_c² / (‖S_c‖ ‖S'_c‖) − cos(S_c, S'_c)]. Clusters with no image in the batch, and images labelled -1, take
    no part; without any the loss is 0. The gradient flows through the weights too, and never into the target.
    """
    members, present = membership(confident_labels(target, labels), online.dtype, clusters)
    ours, theirs = members @ F.normalize(online, dim=1), members @ F.normalize(target.detach(), dim=1)
    ours, theirs = (torch.where(present[:, None], sums, 1.0) for sums in (ours, theirs))
    lengths = ours.norm(dim=1) * theirs.norm(dim=1)
    pulls = (members.sum(dim=1).square() - (ours * theirs).sum(dim=1)) / lengths.clamp(min=1e-6)
    return mean_of_present(pulls, present)
