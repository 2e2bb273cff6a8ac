"""GCC's contrast on a graph of neighbours: an image's other view and a neighbour, told from all who are not near."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.outputs import Outputs


def graph_contrast(
    views: tuple[Float[Tensor, "B D"], Float[Tensor, "B D"], Float[Tensor, "B D"]],
    near: Bool[Tensor, "B 3*B"],
    weights: Float[Tensor, " B"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Tell an image's other view and its neighbour from the rows of images that are not near it.

    −mean_i log (exp(cos(z_i, z_i⁺)/τ) + w_i exp(cos(z_i, z_n(i))/τ)) / Σ_j exp(cos(z_i, z_j)/τ), j over the rows of all
    three views that are not `near` i. `views` are of the images, of the same once more and of a neighbour of each. An
    image to which all are near takes no part.
    """
    anchor, again, neighbour = (F.normalize(view, dim=1) for view in views)
    logits = anchor @ torch.cat([anchor, again, neighbour]).T / temperature
    alone = near.all(dim=1)
    rest = logits.masked_fill(near & ~alone[:, None], -torch.inf).logsumexp(dim=1)
    own, theirs = ((anchor * view).sum(dim=1) / temperature for view in (again, neighbour))
    losses = rest - torch.logaddexp(own, theirs + weights.log())
    return torch.where(alone, 0.0, losses).mean()


class GraphContrast:
    """The contrast of the projections of a first view, one more of the same image, and a neighbour's.

    The stage computes `Neighbours`, each image first among its own, and `NeighbourWeights`; the second view is a
    neighbour's, and one more view is for the projector. Near an image are itself and its neighbours.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        again, partners = outputs.again_projections, outputs.partners
        assert again is not None
        assert partners is not None
        table, weights = outputs.prepared["neighbours"], outputs.prepared["neighbour weights"]
        images = torch.cat([table[:, 0], table[:, 0], partners])
        near = images == table[:, :1]
        for column in table[:, 1:].unbind(dim=1):
            near = near | (images == column[:, None])
        drawn = torch.where(table == partners[:, None], weights, 0).sum(dim=1)
        first, neighbour = outputs.projections
        return graph_contrast((first, again, neighbour), near, drawn, self.temperature)
