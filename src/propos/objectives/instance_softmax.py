"""Every image a class of its own, told from all others in a bank (instance discrimination, as in IDFD)."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs


def instance_softmax(
    embeddings: Float[Tensor, "B D"], bank: Float[Tensor, "N D"], images: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Tell each image from all others: −mean_i log softmax_j(z_i·v_j / τ) at the image's own row of the bank.

    Embeddings are normalised here, the bank before. No gradient reaches the bank.
    """
    return F.cross_entropy(F.normalize(embeddings, dim=1) @ bank.T / temperature, images)


class InstanceSoftmax:
    """Instance discrimination of both views' projections, averaged."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        bank = outputs.bank
        assert bank is not None
        first, second = (
            instance_softmax(view, bank.embeddings, bank.images, self.temperature) for view in outputs.projections
        )
        return (first + second) / 2
