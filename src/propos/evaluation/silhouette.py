"""The silhouette of a clustering: how much nearer images are to their own cluster than to the next; no labels."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from propos.errors import InputError

CHUNK_VALUES = 2**22
NOTHING = 1e-12  # a mean distance below this is rounding: the images are the same


def silhouette(embeddings: Float[np.ndarray, "N D"], clusters: Int[np.ndarray, " N"]) -> float:
    """Return the mean over images of (b − a) / max(a, b), by cosine distance.

    a is the mean distance to the other images of the own cluster, b that to the images of the nearest other one; an
    image alone in its cluster counts 0. The mean cosine distance to a cluster is 1 minus the product with the
    cluster's mean, so this is exact for any number of images, without the distances between them.
    """
    _, own, counts = np.unique(clusters, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        raise InputError("silhouette: the images are all in one cluster; it takes two")
    sums = np.zeros((len(counts), embeddings.shape[1]))
    chunk = max(1, CHUNK_VALUES // (len(counts) + embeddings.shape[1]))
    spans = [slice(start, start + chunk) for start in range(0, len(embeddings), chunk)]
    for span in spans:
        np.add.at(sums, own[span], _unit(embeddings[span]))
    total = sum(_widths(_unit(embeddings[span]), own[span], sums, counts).sum() for span in spans)
    return float(total / len(embeddings))


def _widths(
    unit: Float[np.ndarray, "n D"],
    own: Int[np.ndarray, " n"],
    sums: Float[np.ndarray, "K D"],
    counts: Int[np.ndarray, " K"],
) -> Float[np.ndarray, " n"]:
    rows, products = np.arange(len(unit)), unit @ sums.T
    others = counts[own] - 1
    own_products = products[rows, own] - np.square(unit).sum(axis=1)
    within = 1 - own_products / np.maximum(others, 1)
    between = 1 - products / counts
    between[rows, own] = np.inf
    nearest = between.min(axis=1)
    within, nearest = (np.where(distance < NOTHING, 0.0, distance) for distance in (within, nearest))
    larger = np.maximum(within, nearest)
    return np.where((others > 0) & (larger > 0), (nearest - within) / np.where(larger > 0, larger, 1.0), 0.0)


def _unit(rows: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
    rows = np.asarray(rows, dtype=np.float64)
    unit: Float[np.ndarray, "n D"] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return unit
