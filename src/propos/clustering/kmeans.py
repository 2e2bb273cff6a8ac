"""Spherical k-means: many starts are tried on a sample, and the best continue to a fixed point on all points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from propos.clustering.lloyd import Clustering, best_first, cluster_sums, directions, inertia, lloyd
from propos.clustering.points import Points, prepare
from propos.clustering.seeding import Seeding, sample, seed
from propos.clustering.yinyang import yinyang
from propos.common.errors import InputError
from propos.distributed import broadcast

MAX_ITERATIONS = 300
TOLERANCE = 1e-4

# Parameters of scouting, chosen by measurement (docs/kmeans.md).
SCOUT_POINTS = 2048
SCOUT_POINTS_A_CLUSTER = 128
SCOUT_BYTES = 64 * 2**20
SCOUT_ITERATIONS = 100
SCOUT_TOLERANCE = 0.03
FEW_CLUSTERS = 32  # few clusters have few fixed points, far apart: more starts help
STARTS_A_RESTART = 4  # with few clusters: a start on the sample is cheap
RANKED_CENTRES = 128  # centres of the best scouts, approximately, that are compared on all points
FINALISTS = 2  # the best of them, with few clusters, that continue to a fixed point on all points


@dataclass(frozen=True)
class _Search:
    """The number of clusters, the starts, and the end of the iteration."""

    clusters: int
    restarts: int
    generator: torch.Generator
    seeding: Seeding
    previous: Float[Tensor, "K D"] | None  # centres that are one more start
    max_iter: int
    tol: float

    def starts(self, points: Points, starts_a_restart: int = 1) -> Float[Tensor, "R K D"]:
        """Draw the first centres of every restart; the previous ones are not among them."""
        return seed(points, self.clusters, self.restarts * starts_a_restart, self.generator, self.seeding)

    def join(self, starts: Float[Tensor, "R K D"]) -> Float[Tensor, "R1 K D"]:
        """Return the starts and, where there are any, the previous centres."""
        return starts if self.previous is None else torch.cat([starts, self.previous[None]])


def spherical_kmeans(
    points: Shaped[Tensor, "N D"],
    clusters: int,
    restarts: int,
    generator: torch.Generator,
    *,
    previous: Float[Tensor, "K D"] | None = None,
    weights: Float[Tensor, " N"] | None = None,
    fixed: Int[Tensor, " N"] | None = None,
    seeding: Seeding = "k-means++",
    max_iter: int = MAX_ITERATIONS,
    tol: float = TOLERANCE,
    chunk_size: int | None = None,
    scout_size: int | Literal["auto"] | None = "auto",
    sharded: bool = False,
) -> Clustering:
    """Cluster points by direction and return the best of several restarts; no cluster is empty.

    The result is a fixed point of Lloyd's iteration on all the points: no point has a centre nearer than its own by
    more than `tol` in cosine, and each centre is the normalised sum of its points. `previous` is one more start.

    With many more points than `scout_size` the starts are made and tried on a sample of that size, several for each
    restart when clusters are few, and the best continue on all points; None runs every restart on all points. With
    `sharded`, each process passes its part of the points and equal other arguments, and gets the labels of its part.

    Points that are `fixed` stay in the cluster of that number and count in its centre; −1 is free. The numbers refer to
    `previous`, so there are no restarts then (constrained k-means, Basu et al. 2002).
    """
    held = prepare(points, weights, chunk_size, sharded, fixed)
    search = _Search(clusters, restarts, generator, seeding, previous, max_iter, tol)
    _check(held, search, scout_size)
    if previous is not None:
        search = replace(search, previous=F.normalize(previous.to(held.device, held.dtype), dim=1))
    size = _scout_size(held, clusters, scout_size)
    if size is not None and restarts and size >= held.total:
        return _all_restarts(held, search)
    starts = search.join(search.starts(held)) if size is None or not restarts else _scout(held, search, size)
    return _best(held, [_fixed_point(held, start, max_iter, tol) for start in starts])


def assign(points: Float[Tensor, "N D"], centres: Float[Tensor, "K D"]) -> tuple[Int[Tensor, " N"], Tensor]:
    """Return each point's nearest centre and its cosine to all centres."""
    cosines = F.normalize(points, dim=1) @ centres.T
    return cosines.argmax(dim=1), cosines


def _scout_size(points: Points, clusters: int, scout_size: int | str | None) -> int | None:
    """Return the size of the sample, all points if there are few; None: no scouting."""
    usual = max(SCOUT_POINTS, SCOUT_POINTS_A_CLUSTER * clusters)
    usual = max(min(usual, SCOUT_BYTES // (points.dimension * points.dtype.itemsize)), 4 * clusters)
    if points.total <= 2 * usual and scout_size in ("auto", None):
        return points.total
    if scout_size is None:
        return None
    return usual if scout_size == "auto" else max(int(scout_size), clusters)


def _all_restarts(points: Points, search: _Search) -> Clustering:
    """Run every restart on all points, in one matrix product: with few points a product of one restart is small."""
    everything = sample(points, points.total, search.generator)
    ended = lloyd(everything, search.join(search.starts(everything)), search.max_iter, search.tol)
    best = int(best_first(everything, ended.inertia)[0])
    fixed = yinyang(points, _same(points, ended.centres[best]), 1, search.tol)
    return replace(fixed, iterations=int(ended.iterations[best]))


def _scout(points: Points, search: _Search, size: int) -> Float[Tensor, "F K D"]:
    """Return the most promising starts: run on a sample, then compared on all points after one more iteration."""
    few = search.clusters <= FEW_CLUSTERS
    scouts = sample(points, size, search.generator)
    starts = search.starts(scouts, STARTS_A_RESTART if few else 1)
    scouted = lloyd(scouts, starts, SCOUT_ITERATIONS, SCOUT_TOLERANCE)
    ranked = best_first(scouts, scouted.inertia)[: max(FINALISTS, RANKED_CENTRES // search.clusters)]
    candidates = _same(points, search.join(scouted.centres[ranked.to(points.device)]))
    sums, _ = cluster_sums(points, candidates)
    order = best_first(points, inertia(points, sums))[: FINALISTS if few else 1]
    return directions(sums[order], candidates[order])


def _fixed_point(points: Points, start: Float[Tensor, "K D"], max_iter: int, tol: float) -> Clustering:
    """Iterate one start to a fixed point; on an accelerator in whole passes, without waiting for the host."""
    if points.device.type == "cpu":
        return yinyang(points, start, max_iter, tol)
    ended = lloyd(points, start[None], max_iter, tol)
    return replace(yinyang(points, ended.centres[0], 1, tol), iterations=int(ended.iterations[0]))


def _best(points: Points, runs: list[Clustering]) -> Clustering:
    return runs[int(best_first(points, torch.tensor([run.inertia for run in runs], dtype=torch.float64))[0])]


def _same(points: Points, centres: Tensor) -> Tensor:
    """Return the first process's centres: machines may round differently while scouting."""
    return broadcast(centres) if points.sharded else centres


def _check(points: Points, search: _Search, scout_size: int | str | None) -> None:
    clusters, restarts, previous = search.clusters, search.restarts, search.previous
    max_iter, tol = search.max_iter, search.tol
    if not 1 <= clusters <= points.total:
        raise InputError(f"k-means: {clusters} clusters of {points.total} points: choose from 1 to {points.total}")
    if restarts < (1 if previous is None else 0):
        raise InputError(f"k-means: {restarts} restarts: choose 1 or more")
    if max_iter < 1 or not tol >= 0:
        raise InputError(f"k-means: max_iter is {max_iter} and tol {tol}: choose at least 1 and at least 0")
    if isinstance(scout_size, str) and scout_size != "auto":
        raise InputError(f"k-means: scout_size is {scout_size!r}: choose 'auto', a number of points or None")
    if isinstance(scout_size, int) and scout_size < 1:
        raise InputError(f"k-means: scout_size is {scout_size}: choose 1 or more, 'auto' or None")
    if previous is not None and previous.shape != (clusters, points.dimension):
        shape = (clusters, points.dimension)
        raise InputError(f"k-means: the previous centres have the shape {tuple(previous.shape)}: it must be {shape}")
    if previous is not None and not bool(torch.isfinite(previous).all()):
        raise InputError("k-means: the previous centres hold NaN or infinity: leave them out")
    if points.fixed is not None:
        _check_fixed(points.fixed, len(points), clusters, restarts)
    if points.mass <= 0:
        raise InputError("k-means: every weight is zero: give some points a weight above 0")
    if points.solid_mass <= 0:
        raise InputError("k-means: every point that counts is a zero vector, which has no direction: check the data")


def _check_fixed(fixed: Tensor, points: int, clusters: int, restarts: int) -> None:
    if restarts:
        raise InputError(f"k-means: {restarts} restarts of fixed points: choose 0, and give the previous centres")
    if fixed.shape != (points,):
        raise InputError(f"k-means: fixed of shape {tuple(fixed.shape)} for {points} points: give one per point")
    if len(fixed) and not -1 <= int(fixed.min()) <= int(fixed.max()) < clusters:
        raise InputError(
            f"k-means: fixed has numbers other than those of the {clusters} clusters and −1: check the numbers"
        )
