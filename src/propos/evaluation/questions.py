"""Active selection of images for a person to check: those whose correction tells most about other images.

A correction extends to the images that are nearer to the checked image than to their own prototype and to every image
checked before; continuing the run uses it that way (`propos run --from`). The value of a check is how much nearer these
images are, summed: large for images far from their prototype (uncertain) that have many similar images (typical) and
are unlike those already chosen (diverse). Images are chosen greedily. Labels are not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from propos.runs import Vectors

CANDIDATES = 4_096  # of more images, as many, spread over all, may be chosen
AUDIENCE = 4_096  # images over which the value is summed


@dataclass(frozen=True)
class Questions:
    """Images to ask about, group by group: those of a group lie between the same two clusters."""

    rows: Int[np.ndarray, " Q"]  # of the run's table
    group: Int[np.ndarray, " Q"]  # from 0 on, the largest first
    cluster: Int[np.ndarray, " Q"]  # ids: where the image is
    alternative: Int[np.ndarray, " Q"]  # where else it is likeliest to belong


def choose_questions(
    embeddings: Vectors,
    prototypes: Float[np.ndarray, "K D"],
    ids: Int[np.ndarray, " K"],
    cluster: Int[np.ndarray, " N"],
    confirmed: Bool[np.ndarray, " N"],
    count: int,
) -> Questions:
    """Choose at most `count` images that are not checked yet; cluster ids of junk are below 0."""
    unanswered = np.flatnonzero(~confirmed & (cluster >= 0))
    answered = np.flatnonzero(confirmed & (cluster >= 0))
    served_by = np.concatenate([prototypes, embeddings[_some(answered, AUDIENCE)]])
    chosen = _choose_greedily(embeddings, unanswered, served_by, min(count, len(unanswered)))
    own, other = _between(embeddings[chosen], prototypes, ids, cluster[chosen])
    group = _largest_first(np.sort(np.stack([own, other], axis=1), axis=1))
    order = np.lexsort((np.arange(len(chosen)), own, group))
    return Questions(chosen[order], group[order], ids[own[order]], ids[other[order]])


def _choose_greedily(
    embeddings: Vectors,
    unanswered: Int[np.ndarray, " M"],
    served_by: Float[np.ndarray, "S D"],
    count: int,
) -> Int[np.ndarray, " Q"]:
    """Choose images greedily by their gain; if none gains anything, the ones least similar to those chosen.

    An image's gain only shrinks as others are chosen, so its last computed gain is an upper bound. It is computed again
    only while the largest bound is outdated (lazy greedy).
    """
    candidates, audience = _some(unanswered, max(CANDIDATES, count)), _some(unanswered, AUDIENCE)
    points, others = embeddings[candidates], embeddings[audience]
    nearness = points @ others.T
    reached = (others @ served_by.T).max(axis=1)
    badly_served = 1e-6 * (1 - (points @ served_by.T).max(axis=1))
    bound = np.array([np.maximum(row - reached, 0).sum() for row in nearness]) + badly_served
    chosen = np.zeros(count, dtype=np.int64)
    for place in range(count):
        best, computed = int(bound.argmax()), -1
        while best != computed:
            bound[best] = np.maximum(nearness[best] - reached, 0).sum() + badly_served[best]
            best, computed = int(bound.argmax()), best
        chosen[place], bound[best] = candidates[best], -np.inf
        reached = np.maximum(reached, nearness[best])
    return chosen


def _between(
    embeddings: Float[np.ndarray, "Q D"],
    prototypes: Float[np.ndarray, "K D"],
    ids: Int[np.ndarray, " K"],
    cluster: Int[np.ndarray, " Q"],
) -> tuple[Int[np.ndarray, " Q"], Int[np.ndarray, " Q"]]:
    """Return the row of each image's own prototype, and that of the nearest other."""
    order = np.argsort(ids)
    own = order[np.searchsorted(ids, cluster, sorter=order)]
    cosines = embeddings @ prototypes.T
    cosines[np.arange(len(own)), own] = -np.inf
    return own, cosines.argmax(axis=1)


def _largest_first(pairs: Int[np.ndarray, "Q 2"]) -> Int[np.ndarray, " Q"]:
    """Return the number of each pair's group, the largest first, equals by their clusters."""
    _, group, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[group.ravel()]


def _some(rows: Int[np.ndarray, " M"], most: int) -> Int[np.ndarray, " m"]:
    """Return all rows, or of many as many from all over."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]
