"""PCL's contrast with the prototypes of a clustering (ProtoNCE)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def proto_nce(
    query: Float[Tensor, "B D"],
    prototypes: Float[Tensor, "M D"],
    concentrations: Float[Tensor, " M"],
    labels: Int[Tensor, " B"],
    counts: Float[Tensor, " M"] | None = None,
) -> Float[Tensor, ""]:
    """Contrast each query's own prototype with others: −mean log(exp(s_own) / Σ_j n_j exp(s_j)), s_j = q·c_j / φ_j.

    `counts` says how often each prototype is in the sum, n_j; by default once: a softmax over all of them. Queries
    labelled -1 take no part; without any the loss is 0.
    """
    logits = F.normalize(query, dim=1) @ prototypes.T / concentrations
    known = labels >= 0
    own = logits.gather(1, labels.clamp(min=0)[:, None])[:, 0]
    weighted = logits if counts is None else logits + counts.log()
    return ((weighted.logsumexp(dim=1) - own) * known).sum() / known.sum().clamp(min=1)


def counts_in_batch(labels: Int[Tensor, " B"], draws: Float[Tensor, " M"], negatives: int) -> Float[Tensor, " M"]:
    """Return how often PCL's code has each prototype in its sum: once for each image of its cluster in the batch.

    Of the prototypes without an image in the batch, those with the `negatives` highest draws are in it once.
    """
    present = torch.zeros_like(draws).scatter_add_(0, labels.clamp(min=0), (labels >= 0).to(draws.dtype))
    ranks = draws.masked_fill(present > 0, -torch.inf).argsort(descending=True).argsort()
    return torch.where(present > 0, present, (ranks < negatives).to(draws.dtype))
