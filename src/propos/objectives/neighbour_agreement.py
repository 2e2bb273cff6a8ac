"""SCAN's agreement: an image and its neighbour belong together."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs

LEAST = 1e-8  # chance, whose logarithm is finite


def neighbour_agreement(first: Float[Tensor, "B K"], second: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Put each image where its neighbour is: −mean_i log p_i·p_n(i), the chance that both are in one cluster."""
    return -(first * second).sum(dim=1).clamp(min=LEAST).log().mean()


class NeighbourAgreement:
    """The agreement of the cluster head on both views; the gradient flows through both."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        return neighbour_agreement(*outputs.assignments)
