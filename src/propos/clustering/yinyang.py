"""Lloyd's iteration with Yinyang bounds: only points whose nearest centre may have changed are compared again.

As in Yinyang k-means (Ding et al., 2015) each point carries one bound for its own centre and one for each group of the
others; with a single group they would be Hamerly's (2010), with a group for every centre Elkan's (2003). They bound
distances: a centre that moves by δ changes |x − c| by no more than δ. For unit vectors |x − c|² = 2 − 2 x·c, and bounds
on distances leave a fifth fewer points in doubt than bounds on cosines. While the bound on the distance to the own
centre is below the others, the point cannot have changed cluster. Unlike Yinyang's, groups go by the centres' numbers,
and a point in doubt is compared with all centres, in one matrix product. Late iterations compare a few per cent of the
points, and move only changed ones from one sum to another. The result is that of the plain iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.lloyd import (
    ONE_HOT_CLUSTERS,
    Clustering,
    block_sums,
    chunk_sums,
    count_labels,
    directions,
    inertia,
    largest_move,
    move_tolerance,
    nearest,
    refill,
)
from propos.clustering.points import Points, rows_per_chunk, spans
from propos.clustering.products import dot_products

GROUPS = 32  # bounds a point: more let more points rest, fewer take less memory and time to keep
CLUSTERS_A_GROUP = 3
BOUND_VALUES = 2**24  # 64 MB of float32 at most
ROUNDING = 16  # times the machine epsilon: the error of a cosine that bounds allow for
SELECT_BELOW = 0.6  # with fewer points than this share in doubt they are picked out; with more, all are read in order


def yinyang(points: Points, centres: Float[Tensor, "K D"], max_iter: int, tol: float) -> Clustering:
    """Move the centres to a fixed point on all the points; no cluster is left empty."""
    bounds = _Bounds(points, len(centres))
    iterations = 0
    converged = False
    while not converged and iterations < max_iter:
        iterations += 1
        bounds.update(centres)
        moved = directions(bounds.sums, centres)
        still = largest_move(centres, moved) <= move_tolerance(tol, points.dtype)
        still, empty = torch.stack([still, (bounds.sizes == 0).any()]).cpu()
        refilled = refill(points, moved[None], bounds.sizes[None], empty[None])
        bounds.follow(centres, moved)
        centres = moved
        converged = bool(still & ~refilled)
    repeated = _share_out(points, bounds, centres)
    if repeated:
        centres = directions(bounds.sums, centres)
    return Clustering(bounds.labels, centres, float(inertia(points, bounds.sums)), iterations, repeated)


class _Bounds:
    """Every point's centre and the bounds on its distances, and every cluster's sum and size."""

    def __init__(self, points: Points, clusters: int) -> None:
        self.points = points
        self.labels = torch.full((len(points),), -1, dtype=torch.int64, device=points.device)
        self.own = torch.full((len(points),), torch.inf, dtype=points.dtype, device=points.device)
        groups = max(1, min(clusters // CLUSTERS_A_GROUP, GROUPS, BOUND_VALUES // max(len(points), 1)))
        # A row for each group: the least of each column is then found sixteen times as fast as that of each row.
        self.others = torch.zeros((groups, len(points)), dtype=points.dtype, device=points.device)
        self.sums = torch.zeros((clusters, points.dimension), dtype=torch.float64, device=points.device)
        self.sizes = torch.zeros(clusters, dtype=torch.int64, device=points.device)
        self.first = True

    def update(self, centres: Float[Tensor, "K D"]) -> None:
        """Find the nearest centre of every point in doubt and update sums and sizes."""
        clusters, dimension = centres.shape
        change = torch.zeros((clusters, dimension + 1), dtype=torch.float64, device=centres.device)
        for where in self._doubtful(clusters):
            rows = self.points.rows(where)
            labels, own, others = _nearest_and_others(dot_products(rows, centres), len(self.others))
            labels = self.points.apply_fixed(labels, where)
            weights = None if self.points.weights is None else self.points.weights[where]
            if self.first:
                change[:, :dimension] += chunk_sums(rows, labels[:, None], clusters, clusters, weights)
                count_labels(change[:, dimension], labels)
            else:
                _add_changed(change, rows, self.labels[where], labels, weights)
            for held, new in ((self.labels, labels), (self.own, own), (self.others, others.T)):
                _put(held, where, new)
        self.first = False
        change = self.points.sum_over_processes(change)
        self.sums += change[:, :dimension]
        self.sizes += change[:, dimension].long()

    def _doubtful(self, clusters: int) -> Iterator[slice | Int[Tensor, " n"]]:
        """Yield the points whose nearest centre may be another than the one they have, a chunk at a time."""
        doubt = self.own >= self.others.amin(dim=0)
        if self.points.fixed is not None and not self.first:
            doubt &= self.points.fixed < 0
        doubtful = doubt.nonzero()[:, 0]
        if len(doubtful) > SELECT_BELOW * len(self.points):
            yield from self.points.spans(clusters)
        else:
            size = self.points.chunk_size or rows_per_chunk(self.points.dimension + clusters, self.points.device)
            yield from (doubtful[span] for span in spans(len(doubtful), size))

    def follow(self, before: Float[Tensor, "K D"], after: Float[Tensor, "K D"]) -> None:
        """Widen each point's bounds by the largest change of its distances that the centres' moves allow."""
        moves = torch.linalg.vector_norm(after - before, dim=1) + 2 * torch.finfo(after.dtype).eps
        self.own += moves[self.labels]
        self.others -= _group_maxima(moves[None], len(self.others)).T


def _nearest_and_others(
    cosines: Float[Tensor, "n K"], groups: int
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, "n G"]]:
    """Return the nearest centre, the most that its distance can be, and the least of the others in each group.

    Overwrites the cosines.
    """
    rounding = ROUNDING * torch.finfo(cosines.dtype).eps
    labels = nearest(cosines)
    own = cosines.gather(1, labels[:, None])[:, 0]
    cosines.scatter_(1, labels[:, None], -1)
    return labels, _distances(own, -rounding), _distances(_group_maxima(cosines, groups), rounding)


def _distances(cosines: Float[Tensor, "*n"], error: float) -> Float[Tensor, "*n"]:
    """Return the distances of unit vectors whose cosines are larger than these by an error; overwrites the cosines."""
    return cosines.mul_(-2).add_(2 - 2 * error).clamp_(min=0).sqrt_()


def _group_maxima(values: Float[Tensor, "n K"], groups: int) -> Float[Tensor, "n G"]:
    """Return the largest value of each group; column j is in group j modulo their number. Overwrites the values."""
    while values.shape[1] > groups:
        half = groups * math.ceil(values.shape[1] / groups / 2)
        folded = values[:, : values.shape[1] - half]
        torch.maximum(folded, values[:, half:], out=folded)
        values = values[:, :half]
    return values


def _put(held: Tensor, where: slice | Int[Tensor, " n"], new: Tensor) -> None:
    if isinstance(where, slice):
        held[..., where] = new
    else:
        held.index_copy_(held.ndim - 1, where, new)


def _add_changed(
    change: Float[Tensor, "K D1"],
    rows: Float[Tensor, "n D"],
    before: Int[Tensor, " n"],
    after: Int[Tensor, " n"],
    weights: Float[Tensor, " n"] | None,
) -> None:
    """Move the rows that changed cluster from one sum to the other; the last column counts them."""
    changed = (before != after).nonzero()[:, 0]
    if len(changed) == 0:
        return
    moving, before, after = rows.index_select(0, changed), before[changed], after[changed]
    if weights is not None:
        moving = moving * weights[changed, None]
    sums, sizes = change[:, :-1], change[:, -1]
    if len(change) <= ONE_HOT_CLUSTERS:
        members = moving.new_zeros((len(moving), len(change)))
        members.scatter_(1, after[:, None], 1.0).scatter_(1, before[:, None], -1.0)
        sums += block_sums(members, moving)
    else:
        moving = moving.double()
        sums.index_add_(0, after, moving).index_add_(0, before, moving, alpha=-1)
    count_labels(sizes, after)
    count_labels(sizes, before, -1)


def _share_out(points: Points, bounds: _Bounds, centres: Float[Tensor, "K D"]) -> int:
    """Give each empty cluster the farthest point of a cluster with several points; return the number of empty clusters.

    Clusters stay empty when there are fewer distinct directions than clusters, or when the iterations ran out.
    """
    empty = (bounds.sizes == 0).nonzero()[:, 0].tolist()
    if not empty:
        return 0
    cosines = torch.cat(
        [(points.rows(w) * centres.index_select(0, bounds.labels[w])).sum(dim=1) for w in points.spans(0)]
    )
    change = torch.zeros_like(bounds.sums)
    for cluster in empty:
        spare = cosines.where(bounds.sizes[bounds.labels] > 1, torch.inf)
        if points.fixed is not None:
            spare = spare.where(points.fixed < 0, torch.inf)
        place = int(spare.argmin()) if len(spare) else -1
        offer = [float(spare[place]), float(bounds.labels[place])] if place >= 0 else [torch.inf, 0.0]
        offers = points.all_gather(torch.tensor(offer, dtype=torch.float64, device=points.device))
        giver = int(offers[:, 0].argmin())
        if not bool(offers[giver, 0] < torch.inf):
            return len(empty)  # every point left is fixed in another cluster
        source = int(offers[giver, 1])
        bounds.sizes[source] -= 1
        bounds.sizes[cluster] += 1
        if giver == points.rank:
            bounds.labels[place] = cluster
            row = points.rows(slice(place, place + 1))[0].double()
            row = row if points.weights is None else row * points.weights[place]
            change[cluster] += row
            change[source] -= row
    bounds.sums += points.sum_over_processes(change)
    return len(empty)
