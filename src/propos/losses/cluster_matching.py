"""One-to-one matching of clusters between two views: NNM's class level, PICA's partition uncertainty."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def cluster_matching(first: Float[Tensor, "B K"], second: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Match clusters one to one: −mean_k log softmax_j(cos(p_k, q_j)) at j = k; p_k, q_j are columns.

    There is no temperature, so the loss of a perfect match is log(1 + (K − 1) / e), not 0.
    """
    cosines = F.normalize(first, dim=0).T @ F.normalize(second, dim=0)
    return F.cross_entropy(cosines, torch.arange(len(cosines), device=cosines.device))
