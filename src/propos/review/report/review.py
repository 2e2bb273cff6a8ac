"""What the page needs to correct clusters itself: what training found, and how much of it was corrected."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from jaxtyping import Int

from propos.review.report.payload import packed
from propos.review.report.questions import questions
from propos.runs import Run


def review(run: Run) -> dict[str, Any]:
    """Return what edits are applied to, how many there are, and by what a browser knows the run again."""
    return {
        "run": identity(run),
        "folder": run.path.absolute().name,
        "ids": run.prototypes.ids.tolist(),
        "trained": packed_clusters(run.table.cluster) if run.corrected.regrouped else None,
        "written": len(run.edits.edits),
        "questions": questions(run),
    }


def identity(run: Run) -> str:
    """Return what a run is known by wherever its folder is: its plan, its beginning, and what it found."""
    digest = hashlib.sha256(f"{run.info.plan}\n{run.info.started}\n".encode())
    digest.update("\n".join(run.table.images).encode(errors="backslashreplace"))
    digest.update(run.table.cluster.astype("<i4").tobytes())
    return digest.hexdigest()[:32]


def packed_clusters(cluster: Int[np.ndarray, " N"]) -> dict[str, str]:
    """Return the id of each image's cluster as text; −1 is junk."""
    return packed(cluster, "u16" if cluster.min() >= 0 and cluster.max() < 65_536 else "i32")
