"""Two runs of the same images side by side: matching clusters, and images that moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from propos.common.errors import InputError, shown
from propos.evaluation.scores import matched_confusion, nmi
from propos.review.report.payload import packed
from propos.runs import JUNK, Run


def compare_runs(run: Run, other: Run) -> dict[str, Any]:
    """Return another run's cluster of each of a run's images, and the matching of the two runs' clusters.

    Images are matched by name, whatever their order. Corrections are applied; images that are junk in either run are
    left out of the matching.
    """
    theirs = other.corrected.table.cluster[_rows(run, other)]
    ours = run.corrected.table.cluster
    ids = np.unique(theirs)
    names = {cluster.id: cluster.name for cluster in other.corrected.clusters}
    kept = (ours != JUNK) & (theirs != JUNK)
    if not kept.any():
        raise InputError(f"{other.path}: nothing to compare: every image is junk in one of the two runs")
    matched = matched_confusion(theirs[kept], ours[kept])
    places = [int(np.searchsorted(ids, each)) for each in matched.labels]
    rest = [place for place in range(len(ids)) if place not in places]  # junk
    return {
        "name": distinct_name(other.path, run.path),
        "made": other.info.method or other.config.method,
        "names": ["Junk" if each == JUNK else names.get(int(each)) or f"Cluster {each}" for each in ids],
        "of": packed(np.searchsorted(ids, theirs), "i32"),
        "rows": [*places, *rest],
        "pairs": [
            (place, int(cluster))
            for at, (place, cluster) in enumerate(zip(places, matched.clusters, strict=False))
            if matched.counts[at, at]
        ],
        "nmi": float(nmi(theirs[kept], ours[kept])),
    }


def distinct_name(path: Path, other: Path) -> str:
    """Return a folder's name, with as many parent folders as distinguish it from another's."""
    parts, others = path.resolve().parts, other.resolve().parts
    least = next((n for n in range(1, len(parts) + 1) if parts[-n:] != others[-n:]), 1)
    return Path(*parts[-least:]).as_posix()


def _rows(run: Run, other: Run) -> Int[np.ndarray, " N"]:
    """Return the other run's row of each of a run's images; raise InputError if the images differ."""
    ours, theirs = run.table.images, other.table.images
    at = {name: row for row, name in enumerate(theirs)}
    both = sum(name in at for name in ours)
    if len(ours) != len(theirs) or both != len(ours):
        missing = next((name for name in ours if name not in at), None)
        first = "" if missing is None else f", and not {shown(missing)}"
        raise InputError(
            f"{other.path}: contains {both:,} of the {len(ours):,} images of {run.path}{first}: "
            "only runs of the same images can be compared"
        )
    numbered = ours == [str(number) for number in range(len(ours))]
    prints = run.info.source.fingerprint, other.info.source.fingerprint
    if numbered and None not in prints and prints[0] != prints[1]:
        raise InputError(
            f"{other.path}: not the same images as {run.path}: only runs of the same images can be compared"
        )
    return np.array([at[name] for name in ours])
