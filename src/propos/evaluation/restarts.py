"""Disagreement of k-means with itself: labels that change when it starts elsewhere are wrong more often."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float, Int

from propos.runs import Vectors

RESTARTS = 8
MOST = 10_000  # images that centres are fitted to
BLOCK = 20_000


def restart_clusters(embeddings: Vectors, cluster: Int[np.ndarray, " N"], seed: int) -> Int[np.ndarray, "R N"]:
    """Return the cluster of each image in several k-means, by the ids of the given clusters that match best.

    `embeddings` are read in blocks; -1 in `cluster` is junk, which takes no part in the fit or the matching.
    """
    from scipy.optimize import linear_sum_assignment  # imported only when needed: they take a second
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    ids = np.unique(cluster[cluster >= 0])
    kept = np.flatnonzero(cluster >= 0)
    rows = kept[np.linspace(0, len(kept) - 1, min(len(kept), MOST)).round().astype(np.int64)]
    sample, own = embeddings[rows], np.searchsorted(ids, cluster[rows])
    found = np.empty((RESTARTS, len(cluster)), np.int64)
    for turn in range(RESTARTS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different images than clusters
            fitted = KMeans(len(ids), n_init=1, random_state=seed + turn).fit(sample)
        shared = np.zeros((len(ids), len(ids)), np.int64)
        np.add.at(shared, (fitted.labels_, own), 1)
        matched = ids[linear_sum_assignment(shared, maximize=True)[1]]
        for start in range(0, len(cluster), BLOCK):
            block = embeddings[start : start + BLOCK]
            found[turn, start : start + BLOCK] = matched[fitted.predict(block)]
    return found


def disagreement(restarts: Int[np.ndarray, "R n"], cluster: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the share of the restarts in which each image is in another cluster."""
    share: Float[np.ndarray, " n"] = (restarts != cluster).mean(axis=0)
    return share
