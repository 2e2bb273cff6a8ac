"""The prototype scattering loss (PSL)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.losses.prototypes import mean_of_present, membership, prototypes


def prototype_scattering(
    online: Float[Tensor, "*V B D"],
    target: Float[Tensor, "*V B D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart and pull each to its counterpart in the other view (Eq. 4).

    A prototype is the normalised sum of a cluster's normalised projections within the batch (Eqs. 6-7).
    Clusters with no image in the batch, and images labelled -1, take no part. With one cluster there is
    nothing to push apart: the loss is 0. No gradient reaches the target.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours, twins = prototypes(online, members), prototypes(target.detach(), members)
    logits = (ours @ ours.mT / temperature).masked_fill(~present, -torch.inf)
    own = (ours * twins).sum(dim=-1) / temperature
    # The diagonal holds μ_k·μ'_k, the rest μ_k·μ_j: one softmax over each row is Eq. 4.
    diagonal = torch.eye(len(present), dtype=torch.bool, device=logits.device)
    logits = torch.where(diagonal, own[..., None], logits)
    return mean_of_present(torch.logsumexp(logits, dim=-1) - own, present)
