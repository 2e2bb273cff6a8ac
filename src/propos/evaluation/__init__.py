"""Scores of clusterings and representations, with and without labels.

Modules that need torch (neighbours, preservation, silhouette) are not imported here.
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
