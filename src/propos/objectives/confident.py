"""Which images of a batch to rely on: those whose nearest in the batch all have their cluster."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.outputs import Outputs


def agreed_on(embeddings: Float[Tensor, "B D"], labels: Int[Tensor, " B"], most: int) -> Bool[Tensor, " B"]:
    """Return which images have the cluster of all their k nearest others by cosine.

    Of k = 1 … `most` it is that for which k times the number of such images is largest; of several, the smallest.
    Images labelled -1 are relied on by nobody.
    """
    unit = F.normalize(embeddings.detach(), dim=1)
    cosines = unit @ unit.T
    cosines.fill_diagonal_(-torch.inf)
    asked = min(most, len(unit) - 1)
    nearest = cosines.topk(asked, dim=1).indices
    alike = (labels[nearest] == labels[:, None]) & (labels >= 0)[:, None]
    agreed = alike.long().cumprod(dim=1)
    counted = torch.arange(1, asked + 1, device=labels.device)
    # Times more than there are ks, less k: no two are equal.
    best = (agreed.sum(dim=0) * counted * (asked + 1) - counted).argmax()
    return agreed.index_select(1, best[None])[:, 0].bool()


def among_agreed(
    loss: Callable[[Tensor, Tensor, Tensor, int | None], Tensor], outputs: Outputs, labels: Int[Tensor, " B"], most: int
) -> Float[Tensor, ""]:
    """Return the mean over both directions of a loss of projections, targets and labels among images to rely on.

    Each direction relies on the neighbours that its target has.
    """

    def of_direction(online: Tensor, target: Tensor) -> Tensor:
        relied = torch.where(agreed_on(target, labels, most), labels, -1)
        return loss(online, target, relied, outputs.clusters)

    return mean_of_directions(of_direction, outputs.projections, outputs.targets)
