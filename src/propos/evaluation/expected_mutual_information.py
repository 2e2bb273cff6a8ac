"""Expected mutual information of random clusterings: scikit-learn's sum, in seconds instead of minutes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

NEGLIGIBLE = 1e-18  # of a probability's largest value: less than rounding leaves of the sum


def expected_mutual_information(labels: Int[np.ndarray, " L"], clusters: Int[np.ndarray, " K"]) -> float:
    """Return the mean mutual information of all ways to deal images into labels and clusters of these sizes.

    Of a label of a images and a cluster of b, n are shared with hypergeometric probability p(n): the sum over all
    pairs of p(n) · n/N · ln(N n / (a b)). Pairs of equal sizes are counted together, and each sum begins at its most
    probable n and ends where nothing is left to add, all pairs at once.
    """
    total = int(labels.sum())
    (a, of_label), (b, of_cluster) = (np.unique(sizes, return_counts=True) for sizes in (labels, clusters))
    times = np.outer(of_label, of_cluster).ravel()
    a, b = (sizes.ravel().astype(np.float64) for sizes in np.meshgrid(a, b, indexing="ij"))
    most = np.minimum(np.floor((a + 1) * (b + 1) / (total + 2)), np.minimum(a, b))
    peak = np.exp(_log_probability(most, a, b, total))
    sums = peak * _term(most, a, b, total)
    for way in (1, -1):
        n, p, left = most.copy(), peak.copy(), np.arange(len(most))
        while len(left):
            c, d, m = a[left], b[left], n[left]
            if way > 0:
                p[left] *= (c - m) * (d - m) / ((m + 1) * (total - c - d + m + 1))
            else:
                p[left] *= m * (total - c - d + m) / ((c - m + 1) * (d - m + 1))
            n[left] += way
            left = left[p[left] > NEGLIGIBLE * peak[left]]
            sums[left] += p[left] * _term(n[left], a[left], b[left], total)
    return float((times * sums).sum())


def _log_probability(
    n: Float[np.ndarray, " P"], a: Float[np.ndarray, " P"], b: Float[np.ndarray, " P"], total: int
) -> Float[np.ndarray, " P"]:
    """Return the logarithm of C(a, n) · C(N − a, b − n) / C(N, b)."""
    chosen: Float[np.ndarray, " P"] = _log_choose(a, n) + _log_choose(total - a, b - n) - _log_choose(total, b)
    return chosen


def _log_choose(n: Float[np.ndarray, " P"] | int, k: Float[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
    from scipy.special import gammaln  # not before it is needed

    ways: Float[np.ndarray, " P"] = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return ways


def _term(
    n: Float[np.ndarray, " P"], a: Float[np.ndarray, " P"], b: Float[np.ndarray, " P"], total: int
) -> Float[np.ndarray, " P"]:
    """Return what n shared images add to the mutual information."""
    added: Float[np.ndarray, " P"] = n / total * np.log(np.maximum(n, 1) * (total / (a * b)))
    return added
