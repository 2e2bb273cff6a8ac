"""Classification of images into the clusters that k-means found (DeepCluster)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import log_chance
from propos.outputs import Outputs


def pseudo_labels(assignments: Float[Tensor, "B M"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Return −mean_i log p_i at each image's label; images labelled −1 take no part, without any the loss is 0."""
    known = labels >= 0
    own = assignments.gather(1, labels.clamp(min=0)[:, None])[:, 0]
    losses = torch.where(known, -log_chance(own), 0.0)
    return losses.sum() / known.sum().clamp(min=1)


class PseudoLabels:
    """Classification of both views by the head, into the first of the further clusterings, averaged."""

    reads_clusters = True

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        first, second = outputs.assignments
        if not outputs.groupings:
            return first.sum() * 0.0
        found = outputs.groupings[0].labels
        return (pseudo_labels(first, found) + pseudo_labels(second, found)) / 2
