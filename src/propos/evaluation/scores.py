"""Scores: arrays in, floats out. Labels and clusters are any values that can be compared; K need not match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from propos.common.errors import InputError
from propos.evaluation.expected_mutual_information import expected_mutual_information

Values = Shaped[np.ndarray, " N"]
BLOCK = 65_536  # embeddings at a time, in double precision
Counts = Int[np.ndarray, "L K"]  # of images by label and cluster, none of which is empty


def nmi(labels: Values, clusters: Values) -> float:
    """Return the mutual information normalised by the arithmetic mean of the two entropies."""
    return _nmi(_counts(labels, clusters))


def ami(labels: Values, clusters: Values) -> float:
    """Return the mutual information adjusted for chance (arithmetic mean of the entropies)."""
    return _ami(_counts(labels, clusters))


def ari(labels: Values, clusters: Values) -> float:
    """Return the Rand index adjusted for chance."""
    return _ari(_counts(labels, clusters))


def accuracy(labels: Values, clusters: Values) -> float:
    """Return the share of images right under the best one-to-one matching of clusters to labels.

    With more clusters than labels the images of unmatched clusters count as wrong; with fewer, so do the images
    of unmatched labels.
    """
    return _accuracy(_counts(labels, clusters))


def scores(labels: Values, clusters: Values) -> dict[str, float]:
    """Return all scores against labels, from one table of counts."""
    counts = _counts(labels, clusters)
    return {"nmi": _nmi(counts), "ami": _ami(counts), "ari": _ari(counts), "accuracy": _accuracy(counts)}


def numbered(labels: Values) -> Int[np.ndarray, " N"]:
    """Return labels as numbers: scores do not depend on their names, and a million words take a second to compare."""
    numbers: Int[np.ndarray, " N"] = np.unique(labels, return_inverse=True)[1]
    return numbers


@dataclass(frozen=True)
class Confusion:
    """Images by label (rows) and cluster (columns), columns ordered so that matches lie on the diagonal."""

    counts: Int[np.ndarray, "L K"]
    labels: Shaped[np.ndarray, " L"]
    clusters: Shaped[np.ndarray, " K"]


def matched_confusion(labels: Values, clusters: Values) -> Confusion:
    """Return the confusion matrix with each label's matched cluster on the diagonal, unmatched clusters last."""
    label_values, cluster_values, counts = _contingency(*_pair(labels, clusters))
    rows, columns = _matched(counts)
    unmatched_rows = np.setdiff1d(np.arange(counts.shape[0]), rows)
    unmatched_columns = np.setdiff1d(np.arange(counts.shape[1]), columns)
    row_order, column_order = np.append(rows, unmatched_rows), np.append(columns, unmatched_columns)
    return Confusion(counts[row_order][:, column_order], label_values[row_order], cluster_values[column_order])


def uniformity_std(embeddings: Float[np.ndarray, "N D"]) -> float:
    """Return the mean over dimensions of the standard deviation of ℓ2-normalised embeddings.

    Uniform on the sphere gives 1/√D; a collapse gives 0.
    """
    nothing = np.zeros(embeddings.shape[1])
    mean = sum((rows.sum(axis=0) for rows in _unit_rows(embeddings)), start=nothing) / len(embeddings)
    squares = sum((np.square(rows - mean).sum(axis=0) for rows in _unit_rows(embeddings)), start=nothing)
    return float(np.sqrt(squares / len(embeddings)).mean())


def _unit_rows(embeddings: Float[np.ndarray, "N D"]) -> Iterator[Float[np.ndarray, "n D"]]:
    """Yield the embeddings at unit length in double precision, a block at a time."""
    for start in range(0, len(embeddings), BLOCK):
        rows = np.asarray(embeddings[start : start + BLOCK], dtype=np.float64)
        yield rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


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
        raise InputError(f"scores: {labels.shape} labels against {clusters.shape} clusters: give one of each per image")
    if len(labels) == 0:
        raise InputError("scores: there are no images to score")
    return labels, clusters


def _contingency(labels: Values, clusters: Values) -> tuple[Values, Values, Counts]:
    label_values, rows = np.unique(labels, return_inverse=True)
    cluster_values, columns = np.unique(clusters, return_inverse=True)
    shape = len(label_values), len(cluster_values)
    pairs = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return label_values, cluster_values, pairs.reshape(shape)


def _counts(labels: Values, clusters: Values) -> Counts:
    return _contingency(*_pair(labels, clusters))[2]


def _nmi(counts: Counts) -> float:
    if counts.size == 1:
        return 1.0  # neither splits the images
    shared = _mutual_information(counts)
    return shared / _mean_entropy(counts) if shared else 0.0


def _ami(counts: Counts) -> float:
    if 1 in counts.shape:
        return float(counts.size == 1)
    by_chance = expected_mutual_information(counts.sum(axis=1), counts.sum(axis=0))
    over, most = _mutual_information(counts) - by_chance, _mean_entropy(counts) - by_chance
    # As in scikit-learn: if the expected value is the maximum, the denominator keeps its sign and is not 0.
    smallest = float(np.finfo(np.float64).eps)
    over, most = (min(part, -smallest) if part < 0 else max(part, smallest) for part in (over, most))
    return over / most


def _ari(counts: Counts) -> float:
    """Return the Rand index adjusted for chance, counting ordered pairs of images in whole numbers."""
    total = int(counts.sum())
    together, in_label, in_cluster = (int(np.square(part).sum()) for part in (counts, counts.sum(1), counts.sum(0)))
    only_cluster, only_label, both = in_cluster - together, in_label - together, together - total
    neither = total**2 - only_cluster - only_label - together
    if only_label == 0 and only_cluster == 0:
        return 1.0
    return (
        2.0
        * (both * neither - only_label * only_cluster)
        / ((both + only_label) * (only_label + neither) + (both + only_cluster) * (only_cluster + neither))
    )


def _accuracy(counts: Counts) -> float:
    rows, columns = _matched(counts)
    return float(counts[rows, columns].sum() / counts.sum())


def _matched(counts: Counts) -> tuple[Int[np.ndarray, " M"], Int[np.ndarray, " M"]]:
    """Return the labels and the clusters that are matched, so that most images are in both of a pair."""
    from scipy.optimize import linear_sum_assignment  # not before it is needed, which without labels is never

    rows, columns = linear_sum_assignment(counts, maximize=True)
    return rows, columns


def _mutual_information(counts: Counts) -> float:
    from scipy.sparse import csr_matrix
    from sklearn import metrics  # not before it is needed: it takes seconds and brings pandas

    return float(metrics.mutual_info_score(None, None, contingency=csr_matrix(counts)))


def _mean_entropy(counts: Counts) -> float:
    return float(np.mean([_entropy(counts.sum(axis=axis)) for axis in (1, 0)]))


def _entropy(sizes: Int[np.ndarray, " K"]) -> float:
    shares = sizes / sizes.sum()
    return float(-(shares * np.log(shares)).sum())
