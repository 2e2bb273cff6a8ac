"""The embeddings at a few moments of training, if the run kept them."""

from __future__ import annotations

from typing import Any

from propos.common.progress import ShowTask
from propos.data import evenly_spaced
from propos.review.report.layout import lay_out
from propos.review.report.payload import packed
from propos.runs import Run

MOMENTS = 4
MOST_DOTS = 2_000


def moments(run: Run, show_task: ShowTask) -> list[dict[str, Any]]:
    """Lay out the embeddings kept at up to four moments, evenly chosen, of at most 2,000 images."""
    kept, cluster = sorted(run.snapshots), run.table.cluster
    if not kept:
        return []
    chosen = [kept[place] for place in evenly_spaced(len(kept), MOMENTS)]
    images = evenly_spaced(len(cluster), MOST_DOTS)
    drawn = []
    with show_task("Laying out snapshots") as progress:
        for number, epoch in enumerate(chosen):
            place = lay_out(run.snapshot_rows(epoch)[images], cluster[images], run.config.seed)
            drawn.append({"epoch": epoch, "x": packed(place[:, 0], "unit"), "y": packed(place[:, 1], "unit")})
            progress(number + 1, len(chosen))
    return [{**moment, "images": packed(images, "i32")} for moment in drawn]
