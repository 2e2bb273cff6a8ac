"""CC's and SCAN's guard against one cluster taking everything."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs


def cluster_balance(assignments: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Hold clusters to equal shares: ln K + Σ_k p̄_k ln p̄_k with p̄ the mean assignment; 0 when all are equal."""
    shares = assignments.mean(dim=0)
    entropy: Tensor = -torch.special.xlogy(shares, shares).sum()
    return math.log(assignments.shape[1]) - entropy


class ClusterBalance:
    """The balance of both views, summed, or of the first alone."""

    def __init__(self, first_alone: bool = False) -> None:
        self.first_alone = first_alone

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        first, second = outputs.assignments
        return cluster_balance(first) if self.first_alone else cluster_balance(first) + cluster_balance(second)
