"""The prototype scattering loss (PSL)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.outputs import Outputs


def prototype_scattering(
    online: Float[Tensor, "B D"], target: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart and hold each to its twin in the other view (Eq. 4).

    A prototype is the normalised sum of a cluster's normalised projections within the batch (Eqs. 6-7).
    Clusters with no image in the batch, and images labelled -1, take no part. With one cluster there is
    nothing to push apart: the loss is 0. No gradient reaches the target.
    """
    members = _membership(labels, online.dtype)
    prototypes = F.normalize(members @ F.normalize(online, dim=1), dim=1)
    twins = F.normalize(members @ F.normalize(target.detach(), dim=1), dim=1)
    if len(prototypes) < 2:
        return online.sum() * 0.0
    logits = prototypes @ prototypes.T / temperature
    own = (prototypes * twins).sum(dim=1) / temperature
    # The diagonal holds μ_k·μ'_k, the rest μ_k·μ_j: one softmax over each row is Eq. 4.
    diagonal = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    logits = torch.where(diagonal, own[:, None], logits)
    return (torch.logsumexp(logits, dim=1) - own).mean()


def _membership(labels: Int[Tensor, " B"], dtype: torch.dtype) -> Float[Tensor, "P B"]:
    """Return a row of zeros and ones for each cluster present in the batch."""
    present = torch.unique(labels)
    present = present[present >= 0]
    members: Tensor = labels == present[:, None]
    return members.to(dtype)


class PrototypeScattering:
    """The scattering of both directions, averaged."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        (first, second), (first_target, second_target) = outputs.projections, outputs.targets
        forward = prototype_scattering(first, second_target, labels, self.temperature)
        backward = prototype_scattering(second, first_target, labels, self.temperature)
        return (forward + backward) / 2
