"""PCL's contrast with the prototypes of several clusterings (ProtoNCE)."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Grouping, Outputs


def proto_nce(query: Float[Tensor, "B D"], grouping: Grouping) -> Float[Tensor, ""]:
    """Tell each query's own prototype from all others: −mean log softmax_j(q·c_j / φ_j) at the query's cluster.

    Queries labelled -1 take no part; without any the loss is 0.
    """
    known = grouping.labels >= 0
    logits = F.normalize(query, dim=1) @ grouping.prototypes.T / grouping.concentrations
    total = F.cross_entropy(logits, grouping.labels, ignore_index=-1, reduction="sum")
    return total / known.sum().clamp(min=1)


class ProtoNce:
    """ProtoNCE of both views' projections, summed over views and averaged over clusterings."""

    reads_clusters = True

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        losses = [proto_nce(view, grouping) for grouping in outputs.groupings for view in outputs.projections]
        return sum(losses, start=outputs.projections[0].sum() * 0.0) / max(1, len(outputs.groupings))
