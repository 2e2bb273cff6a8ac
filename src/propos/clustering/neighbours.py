"""Exact nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.points import spans, values_at_a_time
from propos.clustering.products import dot_products

COSINES_AT_A_TIME = 2**22  # 16 MB, which fit a CPU's cache
BANK_AT_A_TIME = 2**14  # rows of the bank: on a CPU larger products are limited by memory bandwidth


def nearest_in_blocks(
    queries: Float[Tensor, "Q D"], bank: Float[Tensor, "N D"], count: int, first: int | None = None
) -> Iterator[tuple[Float[Tensor, "q count"], Int[Tensor, "q count"]]]:
    """Yield the cosines and positions of the bank's unit vectors nearest to some queries, nearest first.

    From `first` on, if given, the queries are the bank's own, and none is its own neighbour. The number of cosines in
    memory at once does not depend on the size of the bank.
    """
    at_a_time = values_at_a_time(COSINES_AT_A_TIME, queries.device)
    rows = at_a_time if queries.device.type == "cuda" else BANK_AT_A_TIME
    for span in spans(len(queries), max(1, at_a_time // min(len(bank), rows))):
        found: list[tuple[Tensor, Tensor]] = []
        for part in spans(len(bank), rows):
            cosines = dot_products(queries[span], bank[part])
            if first is not None:
                cosines.diagonal(first + span.start - part.start).fill_(-torch.inf)
            nearest, places = _largest(cosines, min(count, cosines.shape[1]))
            found = [_nearest_of([*found, (nearest, places + part.start)], count)]
        yield found[0]


def _largest(cosines: Float[Tensor, "q n"], count: int) -> tuple[Float[Tensor, "q count"], Int[Tensor, "q count"]]:
    """Return the largest values of each row and their positions, faster than `topk`.

    They are in the groups of columns with the largest maxima, so two `topk` of short rows are enough.
    """
    size = isqrt(cosines.shape[1] // max(1, 2 * count))  # small groups, since their values are gathered one by one
    if size < 2:
        return cosines.topk(count, dim=1)
    groups = cosines.shape[1] // size
    grouped = cosines[:, : size * groups].view(-1, size, groups)
    best = grouped.amax(dim=1).topk(count, dim=1, sorted=False).indices
    columns = torch.arange(cosines.shape[1], device=cosines.device)
    within = best[:, None] + columns[: size * groups : groups, None]
    places = torch.cat([within.flatten(1), columns[size * groups :].expand(len(cosines), -1)], dim=1)
    largest, order = cosines.gather(1, places).topk(count, dim=1)
    return largest, places.gather(1, order)


def _nearest_of(
    found: list[tuple[Float[Tensor, "q _"], Int[Tensor, "q _"]]], count: int
) -> tuple[Float[Tensor, "q count"], Int[Tensor, "q count"]]:
    """Return the nearest of several parts of a bank."""
    if len(found) == 1:
        return found[0]
    cosines, places = (torch.cat(each, dim=1) for each in zip(*found, strict=True))
    nearest, order = cosines.topk(min(count, cosines.shape[1]), dim=1)
    return nearest, places.gather(1, order)


def exact_neighbours(points: Float[Tensor, "N D"], count: int, rows: slice) -> Int[Tensor, "n count"]:
    """Return for each of some unit vectors the positions of the nearest others, nearest first; never its own."""
    none = torch.empty((0, count), dtype=torch.long, device=points.device)
    return torch.cat([none, *(places for _, places in nearest_in_blocks(points[rows], points, count, rows.start))])
