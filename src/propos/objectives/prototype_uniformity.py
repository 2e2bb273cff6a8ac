"""Prototype scattering without its alignment: the ablation that only pushes prototypes apart."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.prototypes import mean_of_present, membership, prototypes
from propos.outputs import Outputs


def prototype_uniformity(
    online: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float, clusters: int | None = None
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart: mean_k log Σ_{j≠k} exp(μ_k·μ_j / τ).

    Clusters with no image in the batch, and images labelled -1, take no part; with one cluster the loss is 0.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours = prototypes(online, members)
    others = present & ~torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    scattered = present & others.any(dim=1)
    logits = (ours @ ours.T / temperature).masked_fill(~others, -torch.inf)
    # A row without others has no logarithm; what stands in its place takes no part.
    sums = torch.logsumexp(torch.where(scattered[:, None], logits, 0), dim=1)
    return mean_of_present(sums, scattered)


class PrototypeUniformity:
    """The uniformity of both views' prototypes, averaged; the queue's entries join the batch's."""

    reads_clusters = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        first, second = outputs.with_queue(outputs.projections)
        labels = outputs.labels_with_queue(labels)
        both = (prototype_uniformity(view, labels, self.temperature, outputs.clusters) for view in (first, second))
        return sum(both, start=first.new_zeros(())) / 2
