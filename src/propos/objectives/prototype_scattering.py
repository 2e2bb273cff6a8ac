"""The prototype scattering loss (PSL)."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.objectives.prototypes import mean_of_present, membership, prototypes
from propos.outputs import Outputs


def prototype_scattering(
    online: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart and hold each to its twin in the other view (Eq. 4).

    A prototype is the normalised sum of a cluster's normalised projections within the batch (Eqs. 6-7).
    Clusters with no image in the batch, and images labelled -1, take no part. With one cluster there is
    nothing to push apart: the loss is 0. No gradient reaches the target.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours, twins = prototypes(online, members), prototypes(target.detach(), members)
    logits = (ours @ ours.T / temperature).masked_fill(~present, -torch.inf)
    own = (ours * twins).sum(dim=1) / temperature
    # The diagonal holds μ_k·μ'_k, the rest μ_k·μ_j: one softmax over each row is Eq. 4.
    diagonal = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    logits = torch.where(diagonal, own[:, None], logits)
    return mean_of_present(torch.logsumexp(logits, dim=1) - own, present)


class PrototypeScattering:
    """The scattering of both directions, averaged; the queue's entries join the batch's."""

    reads_clusters = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        labels, clusters = outputs.labels_with_queue(labels), outputs.clusters
        loss = partial(prototype_scattering, labels=labels, temperature=self.temperature, clusters=clusters)
        online, target = outputs.with_queue(outputs.projections), outputs.with_queue(outputs.targets)
        return mean_of_directions(loss, online, target)
