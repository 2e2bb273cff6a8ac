"""Prototype scattering without its alignment: the ablation that only pushes prototypes apart."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.prototypes import membership, prototypes
from propos.outputs import Outputs


def prototype_uniformity(
    online: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart: mean_k log Σ_{j≠k} exp(μ_k·μ_j / τ).

    Clusters with no image in the batch, and images labelled -1, take no part; with one cluster the loss is 0.
    """
    ours = prototypes(online, membership(labels, online.dtype))
    if len(ours) < 2:
        return online.sum() * 0.0
    diagonal = torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    logits = (ours @ ours.T / temperature).masked_fill(diagonal, -torch.inf)
    return torch.logsumexp(logits, dim=1).mean()


class PrototypeUniformity:
    """The uniformity of both views' prototypes, averaged; the queue's entries join the batch's."""

    reads_clusters = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        first, second = outputs.with_queue(outputs.projections)
        labels = outputs.labels_with_queue(labels)
        both = (prototype_uniformity(view, labels, self.temperature) for view in (first, second))
        return sum(both, start=first.new_zeros(())) / 2
