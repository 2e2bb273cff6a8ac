"""SwAV's prediction of one view's codes, clusters of equal size among the batch, from the other view."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import log_chance, mean_of_directions
from propos.objectives.sinkhorn import sinkhorn
from propos.outputs import Outputs, Queue


def swapped_codes(codes: Float[Tensor, "B M"], assignments: Float[Tensor, "B M"]) -> Float[Tensor, ""]:
    """Return −mean_i Σ_m q_im log p_im: the surprise at one view's codes q by the other's assignments p."""
    return -(codes * log_chance(assignments)).sum(dim=1).mean()


@torch.no_grad()
def codes_of(
    embeddings: Float[Tensor, "B D"],
    prototypes: Float[Tensor, "M D"],
    queue: Queue | None,
    sharpness: float,
    turns: int,
) -> Float[Tensor, "B M"]:
    """Return the shares of prototypes in each image, all prototypes having equal shares of the batch.

    A queue, once full, makes the batch larger.
    """
    cosines = F.normalize(embeddings, dim=1) @ prototypes.T
    codes = sinkhorn(cosines, sharpness, turns)
    if queue is None:
        return codes
    full = (queue.embeddings[-1] != 0).any()  # a ring's last place is filled last
    longer = torch.cat([queue.embeddings @ prototypes.T, cosines])
    return torch.where(full, sinkhorn(longer, sharpness, turns)[-len(codes) :], codes)


class SwappedCodes:
    """The codes of each view's projections predicted from the other's assignments to the prototypes, averaged."""

    def __init__(self, sharpness: float, turns: int) -> None:
        self.sharpness, self.turns = sharpness, turns

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        prototypes = outputs.head_prototypes
        assert prototypes is not None
        assert outputs.assignments is not None
        first, second = (
            codes_of(view, prototypes, outputs.queue, self.sharpness, self.turns) for view in outputs.projections
        )
        return mean_of_directions(swapped_codes, (first, second), outputs.assignments)
