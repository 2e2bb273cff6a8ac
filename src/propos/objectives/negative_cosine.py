"""SimSiam's loss."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.outputs import Outputs


def negative_cosine(prediction: Float[Tensor, "B D"], target: Float[Tensor, "B D"]) -> Float[Tensor, ""]:
    """Pull each prediction to its image's other view: −mean cos(p, z); no gradient reaches the target."""
    return -F.cosine_similarity(prediction, target.detach(), dim=1).mean()


class NegativeCosine:
    """The negative cosine of both directions, averaged."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return mean_of_directions(negative_cosine, outputs.predictions, outputs.targets)
