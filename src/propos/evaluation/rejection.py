"""Rejection of images that belong to none of a run's clusters, and groups among them that may be new kinds."""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Float, Int

from propos.common.errors import InputError, shown

FEWEST = 5  # images of a new kind
MOST = 5_000  # rejected images that are compared with each other
LOOSE = 0.25  # share of the run's clusters that are looser than a new kind may be
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def parse_share(text: str) -> float:
    """Return the share that a percentage means, such as 1%."""
    found = _SHARE.fullmatch(text.strip())
    if found is None or not 0 < float(found[1]) < 50:
        raise InputError(f"--reject {shown(text)}: give the share of own images that may be rejected, such as 1%")
    return float(found[1]) / 100


def distance_limits(
    cluster: Int[np.ndarray, " N"], distance: Float[np.ndarray, " N"], ids: Int[np.ndarray, " K"], share: float
) -> Float[np.ndarray, " K"]:
    """Return for each cluster the distance from its prototype beyond which a share of the run's own images are.

    Distances are counted in spreads of their cluster from its median, so that clusters with few images can share one
    quantile. Clusters without images reject everything.
    """
    middle, spread = np.full(len(ids), -np.inf), np.zeros(len(ids))
    score = []
    for place, number in enumerate(ids.tolist()):
        own = distance[cluster == number]
        if len(own):
            middle[place] = float(np.median(own))
            spread[place] = max(float(np.median(np.abs(own - middle[place]))), float(np.finfo(np.float32).eps))
            score.append((own - middle[place]) / spread[place])
    every = np.concatenate(score)
    # One of n + 1 equally likely places of a new image among the run's own.
    rank = min(1.0, np.ceil((len(every) + 1) * (1 - share)) / len(every))
    limit: Float[np.ndarray, " K"] = middle + np.quantile(every, rank, method="inverted_cdf") * spread
    return limit


def find_kinds(rejected: Float[np.ndarray, "R D"], least: float) -> list[Int[np.ndarray, " n"]]:
    """Group rejected images by average linkage, up to a mean cosine of `least`; return groups, the largest first."""
    if len(rejected) < FEWEST:
        return []
    from scipy.cluster.hierarchy import fcluster, linkage  # imported only when needed: they take half a second
    from scipy.spatial.distance import pdist

    rows = np.linspace(0, len(rejected) - 1, min(len(rejected), MOST)).round().astype(np.int64)
    apart = pdist(rejected[rows], "cosine")
    label = fcluster(linkage(np.nan_to_num(apart, nan=1.0), "average"), 1 - least, "distance")
    groups = [rows[label == number] for number in range(1, label.max() + 1)]
    return sorted((group for group in groups if len(group) >= FEWEST), key=lambda group: (-len(group), group[0]))


def least_cosine(distance: Float[np.ndarray, " N"], cluster: Int[np.ndarray, " N"]) -> float:
    """Return the mean cosine between images of one kind, as a loose cluster of the run has it.

    If images have a mean cosine of m to their prototype, two of them have one of m².
    """
    own = [(1 - float(distance[cluster == number].mean())) ** 2 for number in np.unique(cluster[cluster >= 0]).tolist()]
    return float(np.quantile(own, LOOSE))
