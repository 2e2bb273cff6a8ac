"""Exact nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.points import spans

COSINES_AT_A_TIME = 2**24


def nearest_in_blocks(
    queries: Float[Tensor, "Q D"], bank: Float[Tensor, "N D"], count: int, first: int | None = None
) -> Iterator[tuple[Float[Tensor, "q count"], Int[Tensor, "q count"]]]:
    """Yield the cosines and positions of the bank's unit vectors nearest to some queries, nearest first.

    From `first` on, if given, the queries are the bank's own, and none is its own neighbour.
    """
    for span in spans(len(queries), max(1, COSINES_AT_A_TIME // len(bank))):
        cosines = queries[span] @ bank.T
        if first is not None:
            cosines.diagonal(first + span.start).fill_(-torch.inf)
        nearest, places = cosines.topk(count, dim=1)
        yield nearest, places


def nearest_neighbours(points: Float[Tensor, "N D"], count: int, rows: slice | None = None) -> Int[Tensor, "n count"]:
    """Return for each of some unit vectors the positions of the nearest others, nearest first; never its own."""
    rows = rows or slice(0, len(points))
    count = min(count, len(points) - 1)
    none = torch.empty((0, count), dtype=torch.long, device=points.device)
    return torch.cat([none, *(places for _, places in nearest_in_blocks(points[rows], points, count, rows.start))])
