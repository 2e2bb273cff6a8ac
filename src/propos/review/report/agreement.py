"""Agreement of clusters with labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from propos.evaluation.scores import matched_confusion, scores
from propos.runs import JUNK, ImageTable


@dataclass(frozen=True)
class Agreement:
    """The scores, and images by label and cluster with matches on the diagonal."""

    names: list[str]
    label: Int[np.ndarray, " N"]  # each image's place in names
    scores: dict[str, float]
    rows: list[int]  # places in names
    columns: list[int]  # ids of clusters
    counts: list[list[int]]


def compare_with_labels(table: ImageTable) -> Agreement | None:
    """Compare clusters with labels, without junk; None if there are no labels or no clusters."""
    kept = table.cluster != JUNK
    if table.label is None or not kept.any():
        return None
    names, label = np.unique(table.label, return_inverse=True)
    confusion = matched_confusion(label[kept], table.cluster[kept])
    return Agreement(
        names=[str(name) for name in names],
        label=label,
        scores=scores(label[kept], table.cluster[kept]),
        rows=confusion.labels.tolist(),
        columns=confusion.clusters.tolist(),
        counts=confusion.counts.tolist(),
    )
