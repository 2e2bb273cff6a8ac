"""CC's and SCAN's guard against one cluster taking everything."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def cluster_balance(assignments: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Hold clusters to equal shares: ln K + Σ_k p̄_k ln p̄_k with p̄ the mean assignment; 0 when all are equal."""
    shares = assignments.mean(dim=0)
    entropy: Tensor = -torch.special.xlogy(shares, shares).sum()
    return math.log(assignments.shape[1]) - entropy
