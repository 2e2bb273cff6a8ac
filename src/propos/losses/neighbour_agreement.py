"""SCAN's agreement: an image and its neighbour belong together."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

LEAST = 1e-8  # chance, whose logarithm is finite


def neighbour_agreement(first: Float[Tensor, "B K"], second: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Put each image where its neighbour is: −mean_i log p_i·p_n(i), the chance that both are in one cluster."""
    return -(first * second).sum(dim=1).clamp(min=LEAST).log().mean()
