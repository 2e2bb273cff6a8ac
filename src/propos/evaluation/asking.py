"""Which images to ask a person about: those whose answers say most about the others.

An answer speaks for the images that are nearer to the one asked about than to their own prototype and to whatever was
answered before: so the run that learns from it takes it (`propos run --from`). How much nearer, summed over all images,
is what an answer is worth: much where many images are badly stood for by their prototype (doubtful), are alike
(typical), and are not spoken for yet (different from those chosen). Images are chosen greedily, one after another.
Labels take no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

CANDIDATES = 4_096  # of more images, as many, spread over all, may be chosen
AUDIENCE = 4_096  # and as many are spoken for


@dataclass(frozen=True)
class Asked:
    """Images to ask about, group by group: those of a group lie between the same two clusters."""

    rows: Int[np.ndarray, " Q"]  # of the run's table
    group: Int[np.ndarray, " Q"]  # from 0 on, the largest first
    cluster: Int[np.ndarray, " Q"]  # ids: where the image is
    alternative: Int[np.ndarray, " Q"]  # where else it is likeliest to belong


def choose_questions(
    embeddings: Float[np.ndarray, "N D"],
    prototypes: Float[np.ndarray, "K D"],
    ids: Int[np.ndarray, " K"],
    cluster: Int[np.ndarray, " N"],
    confirmed: Bool[np.ndarray, " N"],
    count: int,
) -> Asked:
    """Choose at most `count` images that nobody answered for yet; clusters go by id, those of junk are below 0."""
    unanswered = np.flatnonzero(~confirmed & (cluster >= 0))
    answered = np.flatnonzero(confirmed & (cluster >= 0))
    served_by = np.concatenate([prototypes, embeddings[_some(answered, AUDIENCE)]])
    chosen = _speakers(embeddings, unanswered, served_by, min(count, len(unanswered)))
    own, other = _between(embeddings[chosen], prototypes, ids, cluster[chosen])
    group = _largest_first(np.sort(np.stack([own, other], axis=1), axis=1))
    order = np.lexsort((np.arange(len(chosen)), own, group))
    return Asked(chosen[order], group[order], ids[own[order]], ids[other[order]])


def _speakers(
    embeddings: Float[np.ndarray, "N D"],
    unanswered: Int[np.ndarray, " M"],
    served_by: Float[np.ndarray, "S D"],
    count: int,
) -> Int[np.ndarray, " Q"]:
    """Choose the images that come nearest to all, one after another; where nothing is gained, the worst served.

    What an image would gain only shrinks as others are chosen. So the gain that was last computed bounds it, and only
    while the largest bound is an old one is it computed anew.
    """
    candidates, audience = _some(unanswered, max(CANDIDATES, count)), _some(unanswered, AUDIENCE)
    nearness = embeddings[candidates] @ embeddings[audience].T
    reached = (embeddings[audience] @ served_by.T).max(axis=1)
    badly_served = 1e-6 * (1 - (embeddings[candidates] @ served_by.T).max(axis=1))
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
