"""Instance alignment; with noise on the projection before the predictor it is positive sampling alignment."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def alignment(prediction: Float[Tensor, "*V B D"], target: Float[Tensor, "*V B D"]) -> Float[Tensor, ""]:
    """Pull each prediction to its image's target in the other view (Eq. 10): mean of ‖p − t‖² = 2 − 2·cos(p, t)."""
    return 2 - 2 * (F.normalize(prediction, dim=-1) * F.normalize(target, dim=-1)).sum(dim=-1).mean()
