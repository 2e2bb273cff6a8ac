"""Instance alignment; with noise on the projection before the predictor it is positive sampling alignment."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.outputs import Outputs


def alignment(prediction: Float[Tensor, "B D"], target: Float[Tensor, "B D"]) -> Float[Tensor, ""]:
    """Pull each prediction to its image's target in the other view (Eq. 9): mean of ‖p − t‖² = 2 − 2·cos(p, t)."""
    return 2 - 2 * (F.normalize(prediction, dim=1) * F.normalize(target, dim=1)).sum(dim=1).mean()


class Alignment:
    """The alignment of both directions, averaged."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return mean_of_directions(alignment, outputs.predictions, outputs.targets)
