"""Approximate nearest neighbours by an inverted file: points are filed in cells, and only near cells are searched.

The cells are those of k-means on a sample, about as many as the root of the number of points. A point's neighbours are
searched in the cells whose centres are nearest to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.kmeans import spherical_kmeans
from propos.clustering.neighbours import exact_neighbours, nearest_in_blocks
from propos.clustering.points import spans, values_at_a_time
from propos.clustering.products import dot_products

EXACT_UP_TO = 200_000  # points: comparing all with all takes minutes; a million take hours
PROBES = 32  # cells in which a point's neighbours are searched
POINTS_A_CELL = 64  # in the sample from which the cells are found
ITERATIONS = 10  # of k-means: cells need not be a fixed point
QUERIES = 2**16  # points whose cells are searched together
COSINES = 2**22  # at a time: 16 MB


@dataclass(frozen=True)
class InvertedFile:
    """Points filed by the cell that they are in."""

    points: Float[Tensor, "N D"]
    centres: Float[Tensor, "C D"]
    order: Int[Tensor, " N"]  # the positions of the points, cell by cell
    ends: list[int]  # where each cell ends in that order

    @classmethod
    def of(cls, points: Float[Tensor, "N D"]) -> InvertedFile:
        """File unit vectors; the same points are always filed in the same way."""
        draw = torch.Generator().manual_seed(0)
        cells = isqrt(len(points))
        sample = points[torch.randperm(len(points), generator=draw)[: POINTS_A_CELL * cells].to(points.device)]
        sample = sample.cpu() if sample.device.type == "mps" else sample  # k-means needs double precision
        found = spherical_kmeans(sample, cells, 1, draw, seeding="random", max_iter=ITERATIONS, scout_size=None)
        centres = F.normalize(found.centres, dim=1).to(points)
        blocks = _blocks(points, cells)
        labels = torch.cat([dot_products(points[span], centres).argmax(dim=1) for span in blocks])
        ends = torch.bincount(labels, minlength=cells).cumsum(dim=0).tolist()
        return cls(points, centres, labels.argsort(stable=True), ends)

    def nearest(self, queries: Int[Tensor, " q"], count: int) -> Int[Tensor, "q count"]:
        """Return the positions of the nearest others of some of the points, nearest first."""
        points = self.points[queries]
        probes = min(PROBES, len(self.centres))
        blocks = _blocks(points, len(self.centres))
        probed = torch.cat([dot_products(points[span], self.centres).topk(probes, dim=1).indices for span in blocks])
        best = points.new_full((len(points), count), -torch.inf)
        places = queries.new_full((len(points), count), -1)
        # The queries that search each cell, cell by cell.
        searching = probed.flatten().argsort(stable=True) // probed.shape[1]
        bounds = [0, *torch.bincount(probed.flatten(), minlength=len(self.centres)).cumsum(dim=0).tolist()]
        for cell, (first, last) in enumerate(pairwise(bounds)):
            members = self.order[self.ends[cell - 1] if cell else 0 : self.ends[cell]]
            if last > first and len(members):
                self._search(points, queries, searching[first:last], members, best, places)
        left = (places < 0).any(dim=1).nonzero()[:, 0]
        if len(left):  # their cells have too few points: all are searched
            places[left] = self._search_all(queries[left], points[left], count)
        return places

    def _search(
        self,
        points: Float[Tensor, "q D"],
        queries: Int[Tensor, " q"],
        which: Int[Tensor, " w"],
        members: Int[Tensor, " m"],
        best: Float[Tensor, "q count"],
        places: Int[Tensor, "q count"],
    ) -> None:
        """Search a cell for some of the queries, and keep the nearest so far in `best` and `places`."""
        bank, count = self.points[members], best.shape[1]
        for span in _blocks(which, len(members)):
            own = which[span]
            cosines = dot_products(points[own], bank)
            cosines.masked_fill_(queries[own][:, None] == members, -torch.inf)  # no point is its own neighbour
            near, columns = cosines.topk(min(count, len(members)), dim=1)
            found = torch.where(near > -torch.inf, members[columns], -1)
            both = torch.cat([best[own], near], dim=1)
            kept, order = both.topk(count, dim=1)
            places[own] = torch.cat([places[own], found], dim=1).gather(1, order)
            best[own] = kept

    def _search_all(
        self, queries: Int[Tensor, " q"], points: Float[Tensor, "q D"], count: int
    ) -> Int[Tensor, "q count"]:
        """Return the exact nearest others; one more is found, because a point finds itself too."""
        found = torch.cat([places for _, places in nearest_in_blocks(points, self.points, count + 1)])
        others = found != queries[:, None]
        # A point that did not find itself, among many equal ones, leaves the last one out.
        others[others.all(dim=1), -1] = False
        return found[others].view(len(queries), count)


def _blocks(rows: Tensor, columns: int) -> Iterator[slice]:
    """Yield blocks of rows whose cosines with `columns` others are computed at a time."""
    return spans(len(rows), max(1, values_at_a_time(COSINES, rows.device) // columns))


def nearest_neighbours(points: Float[Tensor, "N D"], count: int, rows: slice | None = None) -> Int[Tensor, "n count"]:
    """Return for each of some unit vectors the positions of the nearest others, nearest first; never its own.

    Up to 200,000 points they are exact; of more, by an inverted file, which finds nearly all (docs/kmeans.md).
    """
    rows, count = rows or slice(0, len(points)), min(count, len(points) - 1)
    find = exact_neighbours if len(points) <= EXACT_UP_TO else approximate_neighbours
    return find(points, count, rows)


def approximate_neighbours(points: Float[Tensor, "N D"], count: int, rows: slice) -> Int[Tensor, "n count"]:
    """Return for each of some unit vectors the positions of the nearest others in its nearest cells."""
    filed = InvertedFile.of(points)
    positions = torch.arange(rows.start, rows.stop, device=points.device)
    table = torch.empty((len(positions), count), dtype=torch.long, device=points.device)
    for span in spans(len(positions), QUERIES):
        table[span] = filed.nearest(positions[span], count)
    return table
