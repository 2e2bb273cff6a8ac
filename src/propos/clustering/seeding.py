"""Initial centres of k-means: greedy k-means++ on 1 − cosine, all restarts in one matrix product."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from propos.clustering.points import Points, values_at_a_time
from propos.clustering.products import dot_products
from propos.distributed.transfer import send

FIXED_POINT = 2.0**60  # distances are at most 2, so their weighted mean is at most twice that: it fits 64 bits
GROUP_VALUES = 2**22  # distances of restarts that are seeded together: 16 MB, and 32 MB of running sums


Seeding = Literal["k-means++", "random"]


def seed(
    points: Points, clusters: int, restarts: int, generator: torch.Generator, seeding: Seeding = "k-means++"
) -> Float[Tensor, "R K D"]:
    """Choose the first centres of every restart: by k-means++, or random points."""
    if restarts == 0:
        return torch.zeros((0, clusters, points.dimension), dtype=points.dtype, device=points.device)
    group = max(1, values_at_a_time(GROUP_VALUES, points.device) // max(points.total, 1))
    sizes = [min(group, restarts - start) for start in range(0, restarts, group)]
    if seeding == "random":
        return torch.cat([_draw(points, _even(points, size), clusters, generator) for size in sizes])
    return torch.cat([_spread(points, clusters, size, generator) for size in sizes])


def sample(points: Points, size: int, generator: torch.Generator) -> Points:
    """Return one random point out of each of `size` equal stretches of the points, on every process."""
    if size >= points.total:
        return points.gathered(torch.arange(points.total)) if points.sharded else points
    jitter = torch.rand(size, generator=generator, dtype=torch.float64, device=generator.device).cpu()
    places = ((torch.arange(size, dtype=torch.float64) + jitter) * (points.total / size)).long()
    return points.gathered(places.clamp(max=points.total - 1))


def _spread(points: Points, clusters: int, restarts: int, generator: torch.Generator) -> Float[Tensor, "R K D"]:
    candidates = 2 + int(math.log(clusters))
    distance = torch.full((restarts, len(points)), 2.0, dtype=points.dtype, device=points.device)
    chosen = _draw(points, _even(points, restarts), 1, generator)
    centres = [chosen]
    _approach(points, distance, chosen)
    for _ in range(1, clusters):
        drawn = _draw(points, distance, candidates, generator)
        best = _potentials(points, distance, drawn).argmin(dim=1)
        chosen = drawn.take_along_dim(best[:, None, None], dim=1)
        _approach(points, distance, chosen)
        centres.append(chosen)
    return torch.cat(centres, dim=1)


def _even(points: Points, restarts: int) -> Float[Tensor, "R N"]:
    return torch.ones((restarts, len(points)), dtype=points.dtype, device=points.device)


def _draw(
    points: Points, distance: Float[Tensor, "R N"], count: int, generator: torch.Generator
) -> Float[Tensor, "R C D"]:
    """Draw points of every restart with probabilities proportional to weight × distance, over all processes."""
    restarts = len(distance)
    draws = torch.rand((restarts, count), generator=generator, dtype=torch.float64, device=generator.device)
    running = _running_sums(points, distance)
    totals = _totals(points, running)
    # Every point may be a centre already: then any point will do. A GPU is not asked, since the host would wait.
    if points.device.type != "cpu" or not bool((totals.sum(dim=0) > 0).all()):
        hopeless = totals.sum(dim=0) <= 0
        running = torch.where(hopeless[:, None], _running_sums(points, _even(points, restarts)), running)
        totals = _totals(points, running)
    aims = send(draws, points.device) * totals.sum(dim=0)[:, None] - totals[: points.rank].sum(dim=0)[:, None]
    here = (aims >= 0) & (aims < totals[points.rank][:, None])
    if len(points) == 0:
        rows = torch.zeros((restarts * count, points.dimension), dtype=points.dtype, device=points.device)
    else:
        # right=True passes over points of probability 0; rounding may exceed the end.
        picks = torch.searchsorted(running, aims, right=True).clamp(max=len(points) - 1)
        rows = points.rows(picks.flatten()).where(here.flatten()[:, None], 0)
    return points.sum_over_processes(rows).view(restarts, count, points.dimension)


def _running_sums(points: Points, distance: Float[Tensor, "R N"]) -> Float[Tensor, "R N"]:
    probabilities = distance.double()
    if points.solid is not None:
        probabilities = probabilities * points.solid
    if points.device.type == "cuda" and torch.are_deterministic_algorithms_enabled():
        # A GPU's sums of floating-point numbers do not repeat, and torch refuses them; those of integers do.
        return (probabilities * (FIXED_POINT / points.solid_mass)).long().cumsum(dim=1).double()
    return probabilities.cumsum(dim=1)


def _totals(points: Points, running: Float[Tensor, "R N"]) -> Float[Tensor, "W R"]:
    local = running[:, -1] if len(points) else running.new_zeros(len(running))
    return points.all_gather(local.contiguous())


def _potentials(points: Points, distance: Float[Tensor, "R N"], drawn: Float[Tensor, "R C D"]) -> Float[Tensor, "R C"]:
    """Return what the sum of distances would be with each drawn point as one more centre."""
    restarts, count, dimension = drawn.shape
    columns = drawn.reshape(-1, dimension)
    potentials = torch.zeros((restarts, count), dtype=torch.float64, device=points.device)
    for span in points.spans(len(columns)):
        closer = 1 - dot_products(columns, points.rows(span)).view(restarts, count, -1)
        closer = torch.minimum(closer.clamp_(min=0), distance[:, None, span])
        if points.solid is not None:
            closer = closer * points.solid[span]
        potentials += closer.sum(dim=2)
    return points.sum_over_processes(potentials)


def _approach(points: Points, distance: Float[Tensor, "R N"], chosen: Float[Tensor, "R 1 D"]) -> None:
    """Lower each point's distance to that of the centre just chosen where it is nearer."""
    for span in points.spans(len(chosen)):
        closer = (1 - dot_products(chosen[:, 0], points.rows(span))).clamp_(min=0)
        distance[:, span] = torch.minimum(distance[:, span], closer)
