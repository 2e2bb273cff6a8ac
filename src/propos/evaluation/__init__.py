"""How good a clustering is: against labels, and by itself."""

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

__all__ = [
    "accuracy",
    "ami",
    "ari",
    "cluster_sizes",
    "imbalance_ratio",
    "matched_confusion",
    "nmi",
    "scores",
    "uniformity_std",
]
