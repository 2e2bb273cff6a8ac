"""PCL's contrast with the prototypes of a clustering (ProtoNCE)."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def proto_nce(
    query: Float[Tensor, "B D"],
    prototypes: Float[Tensor, "M D"],
    concentrations: Float[Tensor, " M"],
    labels: Int[Tensor, " B"],
) -> Float[Tensor, ""]:
    """Contrast each query's own prototype with all others: −mean log softmax_j(q·c_j / φ_j) at the query's cluster.

    Queries labelled -1 take no part; without any the loss is 0.
    """
    logits = F.normalize(query, dim=1) @ prototypes.T / concentrations
    total = F.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
    return total / (labels >= 0).sum().clamp(min=1)
