"""How good a clustering and a representation are: against labels, and by themselves.

What needs torch (neighbours, linear, preservation, silhouette) is imported from its own module: scores stay without it.
"""

from propos.evaluation.scores import (
    accuracy,
    ami,
    ari,
    cluster_sizes,
    imbalance_ratio,
    matched_confusion,
    nmi,
    numbered,
    scores,
    uniformity_std,
)

__all__ = [
    "accuracy",
    "ami",
    "ari",
    "cluster_sizes",
    "imbalance_ratio",
    "matched_confusion",
    "nmi",
    "numbered",
    "scores",
    "uniformity_std",
]
