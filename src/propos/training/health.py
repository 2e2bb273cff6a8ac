"""Measures of each epoch, and warnings when a run goes wrong."""

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
from propos.training.e_step import Assignment

Record = dict[str, Any]  # a line of history.jsonl (docs/run-folder.md)
Measures = dict[str, Any]
Warning = dict[str, str]  # a code for programs and a text for people
Labels = Shaped[np.ndarray, " N"] | None

COLLAPSED_SPREAD = 0.2  # of 1/√d; a healthy run ends between 0.8 and 1
LOST_SPREAD = 0.5  # of the widest spread so far
DOMINANT_SHARE = 0.5
OVERLAPPING = 0.8  # of nearest neighbours in the same cluster; less where a third of the images were in wrong clusters
ROWS = 65_536  # embeddings at a time, in double precision


def measure(assignment: Assignment, labels: Labels) -> Measures:
    """Measure an E-step; excluded images do not count."""
    clusters = assignment.labels.cpu().numpy()
    part = clusters >= 0
    clusters = clusters[part]
    n_clusters, dimension = assignment.prototypes.shape
    sizes = cluster_sizes(clusters, n_clusters)
    measures: Measures = {
        "n_clusters": n_clusters,
        "uniformity_std": _spread(assignment.embeddings),
        "uniformity_reference": 1 / math.sqrt(dimension),
        "imbalance_ratio": imbalance_ratio(clusters, n_clusters),
        "smallest_cluster": int(sizes.min()),
        "largest_cluster": int(sizes.max()),
        "churn": assignment.churn,
    }
    if assignment.together is not None:
        measures["neighbours_together"] = assignment.together
    return measures if labels is None else {**measures, **scores(labels[part], clusters)}


def _spread(embeddings: Float[Tensor, "n D"]) -> float:
    """Return the uniformity of all processes' embeddings, which are unit vectors."""
    if world_size() == 1:
        return uniformity_std(embeddings.cpu().numpy())
    blocks = embeddings.split(ROWS)
    count = sum_over_processes(torch.tensor(len(embeddings)))
    mean = sum_over_processes(torch.stack([rows.double().sum(dim=0) for rows in blocks]).sum(dim=0)) / count
    squares = torch.stack([(rows.double() - mean).square().sum(dim=0) for rows in blocks]).sum(dim=0)
    return float((sum_over_processes(squares) / count).sqrt().mean())


def warnings(
    measures: Mapping[str, Any], history: Sequence[Mapping[str, Any]], images: int, past_warmup: bool
) -> list[Warning]:
    """Return the new warnings of a run: each kind is given once."""
    reported = {warning["code"] for earlier in history for warning in earlier.get("warnings", [])}
    now = _overlap(measures)
    if past_warmup and "uniformity_std" in measures:
        now += [*_collapse(measures, history), *_dominance(measures, images)]
    return [warning for warning in now if warning["code"] not in reported]


def _collapse(measures: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> list[Warning]:
    spread = _relative_spread(measures)
    earlier = (record["measures"] for record in history)
    widest = max((_relative_spread(each) for each in earlier if "uniformity_std" in each), default=0)
    if spread >= COLLAPSED_SPREAD and spread >= LOST_SPREAD * widest:
        return []
    words = (
        f"embeddings collapse towards one point (spread {spread:.2f}, healthy near 1): "
        "try a lower rate (--set train.lr=…), a higher network.momentum, or milder views"
    )
    return [{"code": "collapse", "text": words}]


def _dominance(measures: Mapping[str, Any], images: int) -> list[Warning]:
    share = measures["largest_cluster"] / images
    if share <= DOMINANT_SHARE or measures["n_clusters"] < 3:
        return []
    words = f"one cluster contains {share:.0%} of the images: try another -k, or milder views"
    return [{"code": "imbalance", "text": words}]


def _overlap(measures: Mapping[str, Any]) -> list[Warning]:
    together = measures.get("neighbours_together", 1.0)
    if together >= OVERLAPPING:
        return []
    words = (
        f"clusters overlap: {together:.0%} of an image's nearest neighbours are in its cluster: "
        "expect mixed clusters, check them in Review, or try another network (--start)"
    )
    return [{"code": "weak", "text": words}]


def _relative_spread(measures: Mapping[str, Any]) -> float:
    spread: float = measures["uniformity_std"] / measures["uniformity_reference"]
    return spread
