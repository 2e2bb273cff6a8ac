"""Images told to be surer of their clusters than they are: DEC's and IDEC's clustering."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import log_chance
from propos.outputs import Outputs


def sharpening(assignments: Float[Tensor, "B K"], wanted: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return mean_i Σ_k p_ik log(p_ik / q_ik): the divergence of assignments q from what is wanted, p."""
    surprise = torch.xlogy(wanted, wanted) - wanted * log_chance(assignments)
    return surprise.sum(dim=1).mean()


class Sharpening:
    """The divergence of both views' assignments from those that the stage sharpened of all images, averaged."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        wanted = outputs.prepared["sharpened"][:, outputs.head]
        first, second = (sharpening(view, wanted) for view in outputs.assignments)
        return (first + second) / 2
