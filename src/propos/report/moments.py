"""The embeddings at a few moments of training, if the run kept them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from propos.report.layout import lay_out
from propos.report.payload import packed
from propos.report.progress import Working
from propos.runs import Clusters, RunFolder

MOMENTS = 4
MOST_DOTS = 2_000
NAME = re.compile(r"epoch-(\d+)\.npy")


def moments(run: RunFolder, clusters: Clusters, working: Working) -> list[dict[str, Any]]:
    """Lay out the embeddings kept at up to four moments, evenly chosen, of at most 2,000 images."""
    kept = sorted(
        (int(match[1]), path) for path in run.path.glob("snapshots/*.npy") if (match := NAME.fullmatch(path.name))
    )
    if not kept:
        return []
    chosen = [kept[int(place)] for place in np.linspace(0, len(kept) - 1, min(MOMENTS, len(kept))).round()]
    images = np.linspace(0, len(clusters.images) - 1, min(MOST_DOTS, len(clusters.images))).round().astype(np.int64)
    drawn = []
    with working("Laying out snapshots") as progress:
        for number, (epoch, path) in enumerate(chosen):
            embeddings = run.array(str(path.relative_to(run.path)))[images]
            place = lay_out(embeddings, clusters.cluster[images], run.config().seed)
            drawn.append({"epoch": epoch, "x": packed(place[:, 0], "unit"), "y": packed(place[:, 1], "unit")})
            progress(number + 1, len(chosen))
    return [{**moment, "images": packed(images, "i32")} for moment in drawn]
