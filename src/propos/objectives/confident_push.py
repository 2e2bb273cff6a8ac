"""DCBoost's push: the clusters of the images that are relied on away from each other."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.confident import among_agreed
from propos.objectives.prototypes import membership, prototypes
from propos.outputs import Outputs


def confident_push(
    online: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Push each cluster's prototype from the targets' prototypes of the others: −mean_{a≠b} ‖μ_a − μ'_b‖².

    Clusters with no image in the batch, and images labelled -1, take no part; with one cluster the loss is 0. No
    gradient reaches the target.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours, theirs = prototypes(online, members), prototypes(target.detach(), members)
    itself = torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    pairs = present & present[:, None] & ~itself
    apart = torch.where(pairs, 2 - 2 * ours @ theirs.T, 0).sum()
    return -apart / pairs.sum().clamp(min=1)


class ConfidentPush:
    """The push of both directions, averaged, among the images that their nearest in the batch agree with."""

    reads_clusters = True

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return among_agreed(confident_push, outputs, labels, self.most)
