"""How good a clustering and a representation are: against labels, and by themselves.

What needs torch (neighbours, linear, preservation) is imported from its own module, so that scores stay without it.
"""

from propos.evaluation.scores import (
    accuracy,
    ami,
    ari,
    cluster_sizes,
    imbalance_ratio,
    matched_confusion,
    nmi,
    scores,
    uniformity_std,
)
from propos.evaluation.silhouette import silhouette

__all__ = [
    "accuracy",
    "ami",
    "ari",
    "cluster_sizes",
    "imbalance_ratio",
    "matched_confusion",
    "nmi",
    "scores",
    "silhouette",
    "uniformity_std",
]
