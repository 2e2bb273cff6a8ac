"""Lloyd's iteration by cosine: all restarts in one matrix product, fixed shapes, rare synchronisation with the host."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.clustering.points import CHUNK_ROWS, Points
from propos.clustering.products import dot_products
from propos.distributed.transfer import send

ONE_HOT_CLUSTERS = 32  # up to this number sums are a matrix product with one-hot labels, above it rows are added
BLOCK_ROWS = 1024  # rows added up in the points' own precision
SERVED = 1e-6  # a point this near to its centre gains nothing from a centre of its own
EQUAL = 1e-5  # inertias that differ by less, a point, are of the same fixed point
CHECK_EVERY = 8  # iterations from one wait for an accelerator to the next; 1 on a CPU


@dataclass(frozen=True)
class Clustering:
    """A fixed point of Lloyd's iteration on all the points; labels are of this process's points."""

    labels: Int[Tensor, " N"]
    centres: Float[Tensor, "K D"]
    inertia: float  # Σ weight · (1 − cosine to the own centre)
    iterations: int
    repeated: int = 0  # clusters that repeat another's direction, if there are too few distinct points


@dataclass(frozen=True)
class Restarts:
    """The result of Lloyd's iteration from each start."""

    centres: Float[Tensor, "R K D"]
    inertia: Float[Tensor, " R"]
    iterations: Int[Tensor, " R"]  # on the host


def lloyd(
    points: Points, centres: Float[Tensor, "R K D"], max_iter: int, tol: float, check_every: int | None = None
) -> Restarts:
    """Move the centres of every restart to a fixed point.

    A restart has ended when no centre moves by more than tol / 2: then no point can have a centre nearer than its
    own by more than tol. An empty cluster gets the point farthest from its centre.
    """
    check_every = check_every or (1 if points.device.type == "cpu" else CHECK_EVERY)
    inertias = torch.zeros(len(centres), dtype=torch.float64, device=centres.device)
    ended = Restarts(centres.clone(), inertias, torch.zeros(len(centres), dtype=torch.int64))
    running = torch.arange(len(centres))
    for iteration in range(1, max_iter + 1):
        sums, sizes = cluster_sums(points, centres)
        moved = directions(sums, centres)
        if iteration % check_every == 0 or iteration == max_iter:
            still = largest_move(centres, moved) <= move_tolerance(tol, points.dtype)
            still, empty = torch.stack([still, (sizes == 0).any(dim=1)]).cpu()  # the host waits only here
            refilled = refill(points, moved, sizes, empty)
            done = (still & ~refilled) | (iteration == max_iter)
            if done.any():
                here, places = (send(each, centres.device) for each in (done.nonzero()[:, 0], running[done]))
                ended.centres.index_copy_(0, places, moved.index_select(0, here))
                ended.inertia.index_copy_(0, places, inertia(points, sums).index_select(0, here))
                ended.iterations[running[done]] = iteration
                running, rest = running[~done], (~done).nonzero()[:, 0]
                if len(running) == 0:
                    break
                moved = moved.index_select(0, send(rest, centres.device))
        centres = moved
    return ended


def cluster_sums(points: Points, centres: Float[Tensor, "R K D"]) -> tuple[Float[Tensor, "R K D"], Int[Tensor, "R K"]]:
    """Return the weighted sum and the number of the points nearest to each centre, over all processes."""
    restarts, clusters, dimension = centres.shape
    columns = restarts * clusters
    others = centres.reshape(columns, dimension)
    first = clusters * torch.arange(restarts, device=centres.device)
    sums = torch.zeros((columns, dimension + 1), dtype=torch.float64, device=centres.device)
    for span in points.product_spans(columns):
        rows = points.rows(span)
        cosines = dot_products(rows, others).view(-1, restarts, clusters)
        labels = points.apply_fixed(nearest(cosines), span) + first
        weights = None if points.weights is None else points.weights[span]
        sums[:, :dimension] += chunk_sums(rows, labels, columns, clusters, weights)
        count_labels(sums[:, dimension], labels)
    sums = points.sum_over_processes(sums).view(restarts, clusters, -1)
    return sums[..., :dimension], sums[..., dimension].long()


def chunk_sums(
    rows: Float[Tensor, "n D"],
    labels: Int[Tensor, "n R"],
    columns: int,
    clusters: int,
    weights: Float[Tensor, " n"] | None,
) -> Float[Tensor, "RK D"]:
    """Return the weighted sums of one chunk's rows; the labels count on through the restarts."""
    if clusters <= ONE_HOT_CLUSTERS:
        members = torch.zeros((len(rows), columns), dtype=rows.dtype, device=rows.device)
        ones = torch.ones_like(rows[:, 0]) if weights is None else weights
        members.scatter_(1, labels, ones[:, None].expand_as(labels))
        return block_sums(members, rows)
    rows = rows if weights is None else rows * weights[:, None]
    rows = rows.double() if len(rows) > CHUNK_ROWS else rows
    sums = torch.zeros((columns, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    for restart in labels.unbind(dim=1):
        sums.index_add_(0, restart, rows)
    return sums


def count_labels(sizes: Float[Tensor, " C"], labels: Int[Tensor, ...], each: int = 1) -> None:
    """Add `each` to the sizes for every label, in place; unlike `bincount` this never waits for the device."""
    sizes.scatter_add_(0, labels.flatten(), sizes.new_full((), each).expand(labels.numel()))


def block_sums(members: Float[Tensor, "n C"], rows: Float[Tensor, "n D"]) -> Float[Tensor, "C D"]:
    """Return membersᵀ · rows, in double over blocks: a long sum of like values rounds each the same way."""
    whole = 0 if rows.device.type == "cpu" else len(rows) - len(rows) % BLOCK_ROWS
    blocks = zip(members[whole:].split(BLOCK_ROWS), rows[whole:].split(BLOCK_ROWS), strict=True)
    # torch's own product has other bits with one thread than with two.
    parts = torch.stack([dot_products(part.T, block.T) for part, block in blocks])
    if whole:  # on a GPU whole blocks are one product
        stacked = (each[:whole].unflatten(0, (-1, BLOCK_ROWS)) for each in (members, rows))
        parts = torch.cat([parts, torch.einsum("bnc,bnd->bcd", *stacked)])
    return parts.sum(dim=0, dtype=torch.float64)


def nearest(cosines: Float[Tensor, "... K"]) -> Int[Tensor, ...]:
    """Return the number of the largest cosine, the first of equals."""
    if cosines.device.type == "cpu" and cosines.shape[-1] > ONE_HOT_CLUSTERS:
        return torch.from_numpy(cosines.numpy().argmax(axis=-1))  # vectorised, several times torch's speed
    return cosines.max(dim=-1).indices


def directions(sums: Float[Tensor, "*R K D"], before: Float[Tensor, "*R K D"]) -> Float[Tensor, "*R K D"]:
    """Return the sums at unit length; where points cancel out or there are none, the centre stays."""
    lengths = torch.linalg.vector_norm(sums, dim=-1, keepdim=True)
    moved: Tensor = torch.where(lengths > 0, sums / lengths, before.to(sums.dtype)).to(before.dtype)
    return moved


def largest_move(before: Float[Tensor, "*R K D"], after: Float[Tensor, "*R K D"]) -> Float[Tensor, "*R"]:
    """Return the largest distance that a centre has moved."""
    furthest: Tensor = torch.linalg.vector_norm(after - before, dim=-1).amax(dim=-1)
    return furthest


def move_tolerance(tol: float, dtype: torch.dtype) -> float:
    """Return the move that counts as none: half of tol, but never less than rounding makes."""
    return max(tol / 2, 8 * torch.finfo(dtype).eps)


def inertia(points: Points, sums: Float[Tensor, "*R K D"]) -> Float[Tensor, "*R"]:
    """Return Σ weight · (1 − cosine): the cosines of a cluster add up to the length of its sum."""
    cosines: Tensor = torch.linalg.vector_norm(sums, dim=-1).sum(dim=-1)
    return (points.mass - cosines).clamp(min=0)


def best_first(points: Points, inertias: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Return the restarts, best first; ties within rounding stay in their order."""
    return (inertias / (EQUAL * points.mass)).round().argsort(stable=True)


def refill(
    points: Points, centres: Float[Tensor, "R K D"], sizes: Int[Tensor, "R K"], empty: Bool[Tensor, " R"]
) -> Bool[Tensor, " R"]:
    """Put the centres of empty clusters on the worst-served points, in place; return which restarts changed.

    `empty` are the restarts that have empty clusters, on the host.
    """
    changed = torch.zeros(len(centres), dtype=torch.bool)
    for restart in empty.nonzero()[:, 0].tolist():
        clusters = (sizes[restart] == 0).nonzero()[:, 0]
        worst = farthest_points(points, centres[restart], len(clusters))
        centres[restart, clusters[: len(worst)]] = worst
        changed[restart] = len(worst) > 0
    return changed


def farthest_points(points: Points, centres: Float[Tensor, "K D"], count: int) -> Float[Tensor, "m D"]:
    """Return at most `count` free points that are farthest from any centre, the worst first, none that has its own."""
    count = min(count, points.total)
    worst = torch.full((count,), torch.inf, dtype=points.dtype, device=points.device)
    rows = torch.zeros((count, points.dimension), dtype=points.dtype, device=points.device)
    for span in points.spans(len(centres)):
        chunk = points.rows(span)
        cosines = dot_products(chunk, centres).amax(dim=1)
        if points.solid is not None:
            cosines = cosines.where(points.solid[span] > 0, torch.inf)
        if points.fixed is not None:
            cosines = cosines.where(points.fixed[span] < 0, torch.inf)
        worst, rows = _lowest(torch.cat([worst, cosines]), torch.cat([rows, chunk]), count)
    worst, rows = _lowest(points.all_gather(worst).flatten(), points.all_gather(rows).flatten(0, 1), count)
    return rows[worst < 1 - SERVED]


def _lowest(values: Float[Tensor, " n"], rows: Float[Tensor, "n D"], count: int) -> tuple[Tensor, Tensor]:
    order = values.argsort(stable=True)[:count]  # stable: the first of equals, whatever the chunk
    return values[order], rows[order]
