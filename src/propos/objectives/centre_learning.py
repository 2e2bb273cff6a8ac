"""Centres learnt from the images of their clusters, with no push from the images of others (SeCu)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs


def centre_learning(
    embeddings: Float[Tensor, "B D"], centres: Float[Tensor, "K D"], labels: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Pull each centre to the images of its cluster: −mean_i log softmax_k(z_i·c_k / τ) at the image's own centre.

    Only the own centre's cosine has a gradient, to the centre alone: what is no member of a cluster does not move it,
    so that a centre without images in the batch stays where it is. Centres are unit vectors; embeddings are made so.
    """
    cosines = F.normalize(embeddings.detach(), dim=1) @ centres.T
    place = labels[:, None]
    own = cosines.detach().scatter(1, place, cosines.gather(1, place))
    return F.cross_entropy(own / temperature, labels)


class CentreLearning:
    """The classification of both views of the batch by each set of centres, averaged."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return torch.stack(
            [
                centre_learning(view, each.now, each.labels, self.temperature)
                for each in outputs.centres
                for view in outputs.projections
            ]
        ).mean()
