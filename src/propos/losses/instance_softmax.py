"""Instance discrimination with a memory bank: every image is a class of its own (as in IDFD)."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def instance_softmax(
    embeddings: Float[Tensor, "B D"], bank: Float[Tensor, "N D"], images: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Classify each image as itself: −mean_i log softmax_j(z_i·v_j / τ) at the image's own row of the bank.

    Embeddings are normalised here, the bank before. No gradient reaches the bank.
    """
    return F.cross_entropy(F.normalize(embeddings, dim=1) @ bank.T / temperature, images)
