"""MoCo's contrast with a queue of earlier keys (InfoNCE)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def info_nce(
    query: Float[Tensor, "B D"], key: Float[Tensor, "B D"], negatives: Float[Tensor, "Q D"], temperature: float
) -> Float[Tensor, ""]:
    """Contrast each query's own key with the queue: −mean log exp(q·k⁺/τ) / (exp(q·k⁺/τ) + Σ_n exp(q·n/τ)).

    Queries and keys are normalised here, the negatives before. No gradient reaches the keys.
    """
    query, key = F.normalize(query, dim=1), F.normalize(key.detach(), dim=1)
    own = (query * key).sum(dim=1, keepdim=True)
    logits = torch.cat([own, query @ negatives.T], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long, device=query.device))
