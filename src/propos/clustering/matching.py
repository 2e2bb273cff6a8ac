"""Stable numbers of clusters from one clustering of the same images to the next."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int


def stable_numbers(previous: Int[np.ndarray, " N"], current: Int[np.ndarray, " N"], clusters: int) -> list[int]:
    """Return the new number of each current cluster so that most images keep theirs (Hungarian matching)."""
    from scipy.optimize import linear_sum_assignment  # imported only when needed: it takes a second

    known = previous >= 0
    shared = np.zeros((clusters, clusters), dtype=np.int64)
    np.add.at(shared, (current[known], previous[known]), 1)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    numbers = [0] * clusters
    for row, column in zip(rows, columns, strict=True):
        numbers[int(row)] = int(column)
    return numbers


def churn(previous: Int[np.ndarray, " N"], current: Int[np.ndarray, " N"]) -> float:
    """Return the share of images whose cluster changed, of those that had one."""
    known = previous >= 0
    return float(np.mean(previous[known] != current[known])) if known.any() else 0.0
