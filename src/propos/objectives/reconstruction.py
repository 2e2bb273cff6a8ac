"""How far images made again from their embeddings are from what they were (DEC's and IDEC's autoencoder)."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs


def reconstruction(made: Float[Tensor, "B P"], pixels: Float[Tensor, "B P"]) -> Float[Tensor, ""]:
    """Return mean_i mean_p (x̂_ip − x_ip)²: the squared error, averaged over pixels and images."""
    return (made - pixels).square().mean()


class Reconstruction:
    """The squared error of what the decoder makes of both views, averaged."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.reconstructions is not None
        assert outputs.pixels is not None
        first, second = map(reconstruction, outputs.reconstructions, outputs.pixels)
        return (first + second) / 2
