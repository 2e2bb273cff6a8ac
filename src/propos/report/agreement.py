"""How clusters and known labels agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from propos.evaluation.scores import matched_confusion, scores
from propos.runs import Clusters


@dataclass(frozen=True)
class Agreement:
    """The scores, and images by label and cluster with matches on the diagonal."""

    names: list[str]
    label: Int[np.ndarray, " N"]  # each image's place in names
    scores: dict[str, float]
    rows: list[int]  # places in names
    columns: list[int]  # clusters
    counts: list[list[int]]


def compare_with_labels(clusters: Clusters) -> Agreement | None:
    """Compare where there are labels."""
    if clusters.label is None:
        return None
    names, label = np.unique(clusters.label, return_inverse=True)
    confusion = matched_confusion(label, clusters.cluster)
    return Agreement(
        names=[str(name) for name in names],
        label=label,
        scores=scores(label, clusters.cluster),
        rows=confusion.labels.tolist(),
        columns=confusion.clusters.tolist(),
        counts=confusion.counts.tolist(),
    )
