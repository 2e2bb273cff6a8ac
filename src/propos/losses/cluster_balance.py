"""The negative entropy of cluster sizes, which prevents one cluster from taking all images (CC, SCAN)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def cluster_balance(assignments: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return ln K + Σ_k p̄_k ln p̄_k, with p̄ the mean assignment: 0 when all clusters have equal shares."""
    shares = assignments.mean(dim=0)
    entropy: Tensor = -torch.special.xlogy(shares, shares).sum()
    return math.log(assignments.shape[1]) - entropy
