"""SCAN's self-labelling: where the cluster head is sure, its answer is the label of another view."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.prototypes import mean_of_present, membership
from propos.outputs import Outputs

LEAST = 1e-30  # chance, whose logarithm is finite


def self_label(plain: Float[Tensor, "B K"], strong: Float[Tensor, "B K"], above: float) -> Float[Tensor, ""]:
    """Put the strong views of images where their plain ones surely are.

    Of the images whose largest p(plain) is above the threshold, the cross-entropy −log p(strong) at that cluster,
    averaged over the images of each cluster and then over the clusters: each counts alike. Without such an image the
    loss is 0. No gradient reaches the plain views.
    """
    sureness, cluster = plain.detach().max(dim=1)
    members, present = membership(torch.where(sureness > above, cluster, -1), strong.dtype, plain.shape[1])
    surprise = -strong.gather(1, cluster[:, None])[:, 0].clamp(min=LEAST).log()
    return mean_of_present((members @ surprise) / members.sum(dim=1).clamp(min=1), present)


class SelfLabel:
    """Self-labelling of the second view by the first."""

    def __init__(self, above: float) -> None:
        self.above = above

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        return self_label(*outputs.assignments, self.above)
