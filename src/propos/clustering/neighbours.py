"""Exact nearest neighbours by cosine."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.points import spans

COSINES_AT_A_TIME = 2**24


def nearest_neighbours(points: Float[Tensor, "N D"], count: int, rows: slice | None = None) -> Int[Tensor, "n count"]:
    """Return for each of some unit vectors the positions of the nearest others, nearest first; never its own."""
    rows = rows or slice(0, len(points))
    count = min(count, len(points) - 1)
    queries = points[rows]
    block = max(1, COSINES_AT_A_TIME // len(points))
    nearest = [torch.empty((0, count), dtype=torch.long, device=points.device)]
    for span in spans(len(queries), block):
        cosines = queries[span] @ points.T
        cosines.diagonal(rows.start + span.start).fill_(-torch.inf)
        nearest.append(cosines.topk(count, dim=1).indices)
    return torch.cat(nearest)
