"""Features that say different things: each column of a batch told from the others (IDFD)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs


def feature_decorrelation(embeddings: Float[Tensor, "B D"], temperature: float) -> Float[Tensor, ""]:
    """Tell each feature from all others: −mean_l log softmax_m(f_l·f_m / τ) at m = l.

    f_l is the l-th column of the normalised embeddings of a batch, itself made a unit vector.
    """
    columns = F.normalize(F.normalize(embeddings, dim=1), dim=0)
    return F.cross_entropy(columns.T @ columns / temperature, torch.arange(columns.shape[1], device=columns.device))


class FeatureDecorrelation:
    """Feature decorrelation of both views' projections, averaged."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        first, second = (feature_decorrelation(view, self.temperature) for view in outputs.projections)
        return (first + second) / 2
