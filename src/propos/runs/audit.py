"""The audit of a run: images drawn at random, so that a person's answers tell how many of all labels are right.

The draw is a file next to the log: the number of edits when it was made, a seed, and the images with their clusters.
What a person said of them follows from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from propos.common.errors import InputError
from propos.common.plain import read_text
from propos.runs.atomic import write_atomically
from propos.runs.corrections import AUDITED, JUNK, MOVED, WRONG, replay
from propos.runs.reader import Run

AUDIT = "audit.json"
UNANSWERED, RIGHT, NOT_RIGHT = -1, 1, 0
MOST_BYTES = 64_000_000
NO_CLUSTER = -3  # its split was undone


NotNegative = Annotated[int, Field(ge=0)]


class _Draw(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    v: Literal[1] = 1
    edits: NotNegative  # of the log when the images were drawn
    seed: NotNegative
    rows: Annotated[tuple[NotNegative, ...], Field(min_length=1)]  # of the run's table, in the order of their draw
    clusters: tuple[NotNegative, ...]  # that they were in


@dataclass(frozen=True)
class Audit:
    """Images drawn from a run, in the order of their draw, and the clusters of all images at that time."""

    rows: Int[np.ndarray, " n"]  # of the run's table
    cluster: Int[np.ndarray, " N"]  # ids; −1: junk, which is not drawn

    def whole(self, run: Run) -> Int[np.ndarray, " N"]:
        """Return the id of the cluster that each image's cluster is part of by now."""
        now = {**run.corrected.whole, JUNK: JUNK}
        ids, place = np.unique(self.cluster, return_inverse=True)
        return np.array([now.get(each, NO_CLUSTER) for each in ids.tolist()], dtype=np.int64)[place]

    def answers(self, run: Run) -> Int[np.ndarray, " n"]:
        """Return whether the label that each drawn image had was right: 1, 0, or −1 where nobody said.

        Confirmations of chosen images are no answers; to move an image, or to mark it as junk, says that it was wrong.
        """
        corrected, same = run.corrected, (self.whole(run) == run.corrected.table.cluster)[self.rows]
        how, junk = corrected.how[self.rows], corrected.junk[self.rows]
        right = same & np.isin(how, (AUDITED, MOVED))
        wrong = np.where(same, how == WRONG, junk | (how == MOVED))
        return np.where(right, RIGHT, np.where(wrong, NOT_RIGHT, UNANSWERED))


def read_audit(run: Run) -> Audit | None:
    """Read which images were drawn; None if none were."""
    draw = _read_draw(run)
    if draw is None:
        return None
    if draw.edits > len(run.edits.edits):
        raise InputError(
            f"{run.path / AUDIT}: was drawn after {draw.edits:,} edits, but edits.jsonl has {len(run.edits.edits):,}: "
            "restore that file, or draw again with propos audit --new"
        )
    rows, cluster = np.array(draw.rows), _clusters(run, draw.edits)
    if rows.max() >= len(cluster) or cluster[rows].tolist() != list(draw.clusters):
        raise InputError(f"{run.path / AUDIT}: belongs to another run: draw again with propos audit --new")
    return Audit(rows, cluster)


def read_drawn(run: Run) -> list[tuple[int, int]]:
    """Return the drawn images and the cluster of each when it was drawn, for the page."""
    draw = _read_draw(run)
    return [] if draw is None else list(zip(draw.rows, draw.clusters, strict=True))


def _clusters(run: Run, edits: int) -> Int[np.ndarray, " N"]:
    """Return the id of each image's cluster after the first edits of the log; −1: junk."""
    before = run.edits.edits[:edits]
    return replay(run.table.images, run.table.cluster, run.prototypes.ids, before).cluster.astype(np.int64)


def draw_images(run: Run, count: int, new: bool = False) -> Audit:
    """Draw images until there are `count` in all; with `new`, from the clusters as they are now."""
    run.refuse_all_junk()
    draw = _read_draw(run)
    seed, edits = (0, len(run.edits.edits)) if draw is None else (draw.seed, draw.edits)
    if new and draw is not None:
        seed, edits = draw.seed + 1, len(run.edits.edits)
    cluster = _clusters(run, edits)
    least = 0 if draw is None or new else len(draw.rows)
    rows = drawing_order(run.table.images, cluster, seed)[: max(least, count)]
    content = _Draw(edits=edits, seed=seed, rows=tuple(rows.tolist()), clusters=tuple(cluster[rows].tolist()))
    write_atomically(run.path / AUDIT, content.model_dump_json().encode() + b"\n")
    return Audit(rows, cluster)


def drawing_order(images: Sequence[str], cluster: Int[np.ndarray, " N"], seed: int) -> Int[np.ndarray, " M"]:
    """Return all images but junk in a random order in which every beginning has its share of each cluster.

    Image r of a cluster's N, in random order, comes at place (r + u) / N with a random u for the cluster, so that each
    image is as likely to be drawn as any other, also from clusters that are too small for a share of one image.
    """
    kept = np.flatnonzero(cluster != JUNK)
    random = np.array([_random(f"{seed}/image/{images[row]}") for row in kept.tolist()])
    order = np.lexsort((random, cluster[kept]))
    ids, first, sizes = np.unique(cluster[kept][order], return_index=True, return_counts=True)
    start = np.array([_random(f"{seed}/cluster/{each}") for each in ids.tolist()])
    rank = np.arange(len(order)) - np.repeat(first, sizes)
    place = (rank + np.repeat(start, sizes)) / np.repeat(sizes, sizes)
    return kept[order[np.lexsort((random[order], place))]]


def _random(text: str) -> float:
    """Return a number in [0, 1) that is always the same for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=6).digest(), "big") / 2**48


def _read_draw(run: Run) -> _Draw | None:
    path = run.path / AUDIT
    if not path.exists():
        return None
    try:
        return _Draw.model_validate_json(read_text(path, MOST_BYTES))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise InputError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}: draw again with --new") from None
