"""SCAN's loss: an image and its neighbour are to be in the same cluster."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

LEAST = 1e-8  # a probability whose logarithm is finite


def neighbour_agreement(first: Float[Tensor, "B K"], second: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return −mean_i log p_i·p_n(i), where p_i·p_n(i) is the probability that both are in the same cluster."""
    return -(first * second).sum(dim=1).clamp(min=LEAST).log().mean()
