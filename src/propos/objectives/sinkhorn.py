"""Equal shares by Sinkhorn and Knopp: soft clusters of a batch, each as large as every other (SwAV's codes)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


@torch.no_grad()
def sinkhorn(scores: Float[Tensor, "B K"], sharpness: float, turns: int = 3) -> Float[Tensor, "B K"]:
    """Return assignments that sum to 1 for every row and, as far as the turns reach, to B / K for every column.

    exp(scores / ε), its columns and its rows scaled by turns; with enough of them, the most probable assignment of all
    rows into columns of equal size (entropic optimal transport). In logarithms, so that no ε is too small for float32.
    """
    logs = scores.float() / sharpness
    rows, columns = logs.shape
    for _ in range(turns):
        logs = logs - logs.logsumexp(dim=0, keepdim=True) - math.log(columns)
        logs = logs - logs.logsumexp(dim=1, keepdim=True) - math.log(rows)
    return (logs + math.log(rows)).exp()
