"""Scores: arrays in, floats out. Labels and clusters are any values that can be compared; K need not match."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.optimize import linear_sum_assignment
from sklearn import metrics

from propos.errors import InputError

Values = Shaped[np.ndarray, " N"]


def nmi(labels: Values, clusters: Values) -> float:
    """Return the mutual information normalised by the arithmetic mean of the two entropies."""
    return float(metrics.normalized_mutual_info_score(*_pair(labels, clusters)))


def ami(labels: Values, clusters: Values) -> float:
    """Return the mutual information adjusted for chance (arithmetic mean of the entropies)."""
    return float(metrics.adjusted_mutual_info_score(*_pair(labels, clusters)))


def ari(labels: Values, clusters: Values) -> float:
    """Return the Rand index adjusted for chance."""
    return float(metrics.adjusted_rand_score(*_pair(labels, clusters)))


def accuracy(labels: Values, clusters: Values) -> float:
    """Return the share of images right under the best one-to-one matching of clusters to labels.

    With more clusters than labels the images of unmatched clusters count as wrong; with fewer, so do the images
    of unmatched labels.
    """
    counts = _contingency(*_pair(labels, clusters))[2]
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def scores(labels: Values, clusters: Values) -> dict[str, float]:
    """Return all scores against labels."""
    return {
        "nmi": nmi(labels, clusters),
        "ami": ami(labels, clusters),
        "ari": ari(labels, clusters),
        "accuracy": accuracy(labels, clusters),
    }


@dataclass(frozen=True)
class Confusion:
    """Images by label (rows) and cluster (columns), columns ordered so that matches lie on the diagonal."""

    counts: Int[np.ndarray, "L K"]
    labels: Shaped[np.ndarray, " L"]
    clusters: Shaped[np.ndarray, " K"]


def matched_confusion(labels: Values, clusters: Values) -> Confusion:
    """Return the confusion matrix with each label's matched cluster on the diagonal, unmatched clusters last."""
    label_values, cluster_values, counts = _contingency(*_pair(labels, clusters))
    rows, columns = linear_sum_assignment(counts, maximize=True)
    unmatched_rows = np.setdiff1d(np.arange(counts.shape[0]), rows)
    unmatched_columns = np.setdiff1d(np.arange(counts.shape[1]), columns)
    row_order, column_order = np.append(rows, unmatched_rows), np.append(columns, unmatched_columns)
    return Confusion(counts[row_order][:, column_order], label_values[row_order], cluster_values[column_order])


def uniformity_std(embeddings: Float[np.ndarray, "N D"]) -> float:
    """Return the mean over dimensions of the standard deviation of ℓ2-normalised embeddings.

    Uniform on the sphere gives 1/√D; a collapse gives 0.
    """
    embeddings = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return float((embeddings / np.maximum(norms, 1e-12)).std(axis=0).mean())


def cluster_sizes(clusters: Int[np.ndarray, " N"], n_clusters: int) -> Int[np.ndarray, " K"]:
    """Return the number of images in each of the clusters 0 … K−1."""
    return np.bincount(clusters, minlength=n_clusters)


def imbalance_ratio(clusters: Int[np.ndarray, " N"], n_clusters: int) -> float:
    """Return the size of the smallest cluster over that of the largest: 1 is balanced, 0 an empty cluster."""
    sizes = cluster_sizes(clusters, n_clusters)
    return float(sizes.min() / sizes.max())


def _pair(labels: Values, clusters: Values) -> tuple[Values, Values]:
    labels, clusters = np.asarray(labels), np.asarray(clusters)
    if labels.shape != clusters.shape or labels.ndim != 1:
        raise InputError(f"scores: {labels.shape} labels against {clusters.shape} clusters: give one of each an image")
    if len(labels) == 0:
        raise InputError("scores: there are no images to score")
    return labels, clusters


def _contingency(labels: Values, clusters: Values) -> tuple[Values, Values, Int[np.ndarray, "L K"]]:
    label_values, rows = np.unique(labels, return_inverse=True)
    cluster_values, columns = np.unique(clusters, return_inverse=True)
    counts = np.zeros((len(label_values), len(cluster_values)), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return label_values, cluster_values, counts
