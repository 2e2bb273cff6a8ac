"""TEMI's weighted pointwise mutual information of neighbours, between heads and their moving averages."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs

LEAST = 1e-16  # a product of chances, whose power has a finite gradient


def weighted_information(
    student: Float[Tensor, "B H K"],
    teacher: Float[Tensor, "B H K"],
    shares: Float[Tensor, "H K"],
    weights: Float[Tensor, " B"],
    power: float,
) -> Float[Tensor, " H"]:
    """Put an image where its neighbour is, and count what all images share for little.

    −mean_i w_i log Σ_k (s(k|x_i) t(k|x'_i))^β / p_k for each head; no gradient reaches teacher, shares and weights.
    """
    together = (student * teacher.detach()).clamp(min=LEAST).pow(power)
    likely = (together / shares.detach()).sum(dim=-1).log()
    return -(weights.detach()[:, None] * likely).mean(dim=0)


def pair_weights(first: Float[Tensor, "B H K"], second: Float[Tensor, "B H K"]) -> Float[Tensor, " B"]:
    """Return how likely a pair is one cluster's: mean over heads of Σ_k t(k|x) t(k|x')."""
    return (first * second).sum(dim=-1).mean(dim=-1)


class WeightedInformation:
    """The weighted information of both directions, averaged over directions and heads."""

    def __init__(self, power: float) -> None:
        self.power = power

    def by_head(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, " H"]:
        """Return each head's part of the loss of the batch."""
        assert outputs.assignments is not None
        assert outputs.target_assignments is not None
        assert outputs.shares is not None
        students, teachers = (
            [_of_heads(view) for view in pair] for pair in (outputs.assignments, outputs.target_assignments)
        )
        weights = pair_weights(*teachers)
        pairs = ((students[0], teachers[1]), (students[1], teachers[0]))
        losses = [weighted_information(*pair, outputs.shares, weights, self.power) for pair in pairs]
        return (losses[0] + losses[1]) / (2 * len(outputs.shares))

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return self.by_head(outputs, labels).sum()


def _of_heads(view: Float[Tensor, "B *H K"]) -> Float[Tensor, "B H K"]:
    return view[:, None] if view.ndim == 2 else view
