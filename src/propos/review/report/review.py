"""The data with which the page applies corrections itself: the clusters of training and the number of edits."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from jaxtyping import Int

from propos.review.report.payload import packed
from propos.review.report.questions import questions
from propos.runs import Run


def review(run: Run) -> dict[str, Any]:
    """Return the clusters that edits apply to, the number of edits, and the run's identity in a browser."""
    return {
        "run": identity(run),
        "folder": run.path.absolute().name,
        "ids": run.prototypes.ids.tolist(),
        "tree": _tree(run),
        "trained": packed_clusters(run.table.cluster) if run.corrected.regrouped else None,
        "written": len(run.edits.edits),
        "questions": questions(run),
    }


def _tree(run: Run) -> dict[str, Any] | None:
    tree = run.tree()
    if tree is None:
        return None
    return {"leaves": tree.leaves, "merges": tree.merges, "leaf": packed(tree.leaf, "u16")}


def identity(run: Run) -> str:
    """Return a hash that identifies a run wherever its folder is: of its plan, its start and its clusters."""
    digest = hashlib.sha256(f"{run.info.plan}\n{run.info.started}\n".encode())
    digest.update("\n".join(run.table.images).encode(errors="backslashreplace"))
    digest.update(run.table.cluster.astype("<i4").tobytes())
    return digest.hexdigest()[:32]


def packed_clusters(cluster: Int[np.ndarray, " N"]) -> dict[str, str]:
    """Return the cluster id of each image as text; −1: junk."""
    return packed(cluster, "u16" if cluster.min() >= 0 and cluster.max() < 65_536 else "i32")
