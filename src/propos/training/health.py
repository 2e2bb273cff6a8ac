"""What is measured each epoch, and the one clear warning when a run goes wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from propos.distributed import sum_over_processes, world_size
from propos.evaluation import cluster_sizes, imbalance_ratio, scores, uniformity_std
from propos.training.expectation import Assignment

Record = dict[str, Any]
Labels = Shaped[np.ndarray, " N"] | None

COLLAPSED_SPREAD = 0.2  # of 1/√d; a healthy run ends between 0.8 and 1
LOST_SPREAD = 0.5  # of the widest spread so far
DOMINANT_SHARE = 0.5


def measure(assignment: Assignment, labels: Labels) -> Record:
    """Measure an E-step."""
    clusters = assignment.labels.cpu().numpy()
    n_clusters, dimension = assignment.prototypes.shape
    sizes = cluster_sizes(clusters, n_clusters)
    record: Record = {
        "n_clusters": n_clusters,
        "uniformity_std": _spread(assignment.embeddings),
        "uniformity_reference": 1 / math.sqrt(dimension),
        "imbalance_ratio": imbalance_ratio(clusters, n_clusters),
        "smallest_cluster": int(sizes.min()),
        "largest_cluster": int(sizes.max()),
        "churn": assignment.churn,
    }
    return record if labels is None else {**record, **scores(labels, clusters)}


def _spread(embeddings: Float[Tensor, "n D"]) -> float:
    """Return the uniformity of all processes' embeddings, which are unit vectors."""
    if world_size() == 1:
        return uniformity_std(embeddings.cpu().numpy())
    rows = embeddings.double()
    count = sum_over_processes(torch.tensor(len(rows)))
    mean = sum_over_processes(rows.sum(dim=0)) / count
    return float((sum_over_processes((rows - mean).square().sum(dim=0)) / count).sqrt().mean())


def warnings(record: Mapping[str, Any], history: Sequence[Mapping[str, Any]], images: int, settled: bool) -> list[str]:
    """Return what is newly wrong with a run: each kind is said once."""
    if not settled or "uniformity_std" not in record:
        return []
    said = {warning.split(":")[0] for earlier in history for warning in earlier.get("warnings", [])}
    found = [*_collapse(record, history), *_dominance(record, images)]
    return [warning for warning in found if warning.split(":")[0] not in said]


def _collapse(record: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> list[str]:
    spread = record["uniformity_std"] / record["uniformity_reference"]
    widest = max((r["uniformity_std"] / r["uniformity_reference"] for r in history if "uniformity_std" in r), default=0)
    if spread >= COLLAPSED_SPREAD and spread >= LOST_SPREAD * widest:
        return []
    return [
        f"collapse: embeddings are closing in on one point (spread {spread:.2f}, healthy near 1): "
        "try a lower rate (--set train.lr=…), a higher network.momentum, or milder views"
    ]


def _dominance(record: Mapping[str, Any], images: int) -> list[str]:
    share = record["largest_cluster"] / images
    if share <= DOMINANT_SHARE or record["n_clusters"] < 3:
        return []
    return [
        f"imbalance: one cluster holds {share:.0%} of the images: "
        "try starting prototype scattering later (--set psl.start=…), another -k, or milder views"
    ]
