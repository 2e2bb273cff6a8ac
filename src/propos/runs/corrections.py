"""A run's clusters as a person corrected them: the one place that applies edits, so that every reader sees the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from propos.runs.clusters import CONFIDENCE_TEMPERATURE, Cluster, Prototypes, gather_clusters, rows_of
from propos.runs.edits import Confirm, Describe, Edit, Junk, Merge, Move, Redo, Rename, Split, Undo
from propos.runs.tables import ImageTable

JUNK = -1  # in the place of a cluster's id: the image belongs to none
NOWHERE = -2  # where no image is
BLOCK = 65_536  # images whose cosines are computed at once, if clusters are few
CELLS = 128 * BLOCK  # cosines that are computed at once


@dataclass(frozen=True)
class Review:
    """What edits say, before anything is computed of it."""

    cluster: Int[np.ndarray, " N"]  # ids; −1: junk
    confirmed: Bool[np.ndarray, " N"]  # a person said so, or put the image there
    standing: frozenset[int]  # ids of clusters that were not made part of another
    names: dict[int, str]
    descriptions: dict[int, str]
    gone: tuple[str, ...]  # images that edits speak of and the run does not have


@dataclass(frozen=True)
class Corrected:
    """A run as it stands after its edits; without any, as it was trained."""

    table: ImageTable  # its clusters are ids; −1: junk
    prototypes: Prototypes
    clusters: tuple[Cluster, ...]
    confirmed: Bool[np.ndarray, " N"]
    gone: tuple[str, ...]
    edited: bool  # there are edits at all
    regrouped: bool  # images changed clusters, so some prototypes are other ones than training's

    @property
    def junk(self) -> Bool[np.ndarray, " N"]:
        """Which images belong to no cluster."""
        junk: Bool[np.ndarray, " N"] = self.table.cluster == JUNK
        return junk

    def names(self) -> dict[int, str | None]:
        """Return the name of each cluster by its id; None where nobody gave it one."""
        return {cluster.id: cluster.name for cluster in self.clusters}


def replay(
    images: Sequence[str], cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"], edits: Sequence[Edit]
) -> Review:
    """Apply edits, one after another, to the clusters that a run found; those that were undone take no part.

    Whoever speaks of a cluster that has become part of another means that other. An edit of a cluster that was split
    off, where the splitting was undone, has no effect.
    """
    counting = _counting(edits)
    splits = sum(isinstance(edit, Split) for edit in edits)
    state = _State(images, cluster, ids, splits)
    for edit in edits:
        if edit.id in counting:
            state.apply(edit)
    return state.review()


def _counting(edits: Sequence[Edit]) -> set[str]:
    """Return the ids of edits that count."""
    counting: set[str] = set()
    for edit in edits:
        if isinstance(edit, Undo):
            counting.discard(edit.edit)
        elif isinstance(edit, Redo):
            counting.add(edit.edit)
        else:
            counting.add(edit.id)
    return counting


class _State:
    """Where each image is put, which cluster is part of which, and what they are called.

    Clusters are numbered as they come up, so that an array can say what has become of each.
    """

    def __init__(
        self, images: Sequence[str], cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"], splits: int
    ) -> None:
        self.rows = {name: row for row, name in enumerate(images)}
        self.ids: list[int] = ids.tolist()
        self.number = {each: number for number, each in enumerate(self.ids)}
        # The number of the cluster that each is part of by now, mostly its own; junk, −1, is the last.
        self.whole = np.append(np.arange(len(self.ids) + splits), JUNK)
        self.place = rows_of(cluster, ids)  # the number under which an image was put somewhere; −1: junk
        self.confirmed = np.zeros(len(images), dtype=bool)
        # Single elements are written many times faster through these.
        self._place, self._confirmed, self._whole = self.place.data, self.confirmed.data, self.whole.data
        self.names: dict[int, str] = {}
        self.descriptions: dict[int, str] = {}
        self.gone: dict[str, None] = {}

    def apply(self, edit: Edit) -> None:
        """Let an edit have its effect."""
        match edit:
            case Move():
                self._put(edit.images, self._standing(edit.into))
            case Confirm(images=None):
                self.confirmed[self._members(edit.cluster)] = True
            case Confirm():
                for row in self._rows_of(edit.images):
                    self._confirmed[row] = self._place[row] != JUNK
            case Junk(images=None):
                members = self._members(edit.cluster)
                self.place[members], self.confirmed[members] = JUNK, False
            case Junk():
                for row in self._rows_of(edit.images):
                    self._place[row], self._confirmed[row] = JUNK, False
            case Rename():
                self._say(self.names, edit.cluster, edit.name)
            case Describe():
                self._say(self.descriptions, edit.cluster, edit.text)
            case Merge():
                self._merge(edit.clusters, edit.into)
            case Split():
                self.number[edit.into] = len(self.ids)
                self.ids.append(edit.into)
                self._put(edit.images, self._standing(edit.into))

    def _standing(self, cluster: int) -> int | None:
        """Return the number of the cluster that one is part of by now; nothing where its splitting off was undone."""
        number = self.number.get(cluster)
        return None if number is None else self._whole[number]

    def _say(self, said: dict[int, str], cluster: int, text: str | None) -> None:
        number = self._standing(cluster)
        if number is not None and text is None:
            said.pop(self.ids[number], None)
        elif number is not None and text is not None:
            said[self.ids[number]] = text

    def _merge(self, clusters: Sequence[int], into: int) -> None:
        whole = self._standing(into)
        for cluster in clusters:
            part = self._standing(cluster)
            if part is not None and whole is not None and part != whole:
                self.whole[self.whole == part] = whole
                self.names.pop(self.ids[part], None)
                self.descriptions.pop(self.ids[part], None)

    def _put(self, images: Sequence[str], number: int | None) -> None:
        rows = self._rows_of(images)
        if number is not None:
            for row in rows:
                self._place[row], self._confirmed[row] = number, True

    def _rows_of(self, images: Sequence[str] | None) -> list[int]:
        rows = []
        for name in images or ():
            row = self.rows.get(name)
            if row is None:
                self.gone[name] = None
            else:
                rows.append(row)
        return rows

    def _members(self, cluster: int | None) -> Int[np.ndarray, " M"]:
        """Return the rows of the images that a cluster holds by now."""
        assert cluster is not None
        number = self._standing(cluster)
        return np.flatnonzero(self._standing_places() == (NOWHERE if number is None else number))

    def _standing_places(self) -> Int[np.ndarray, " N"]:
        """Return the number of the cluster that each image is in by now; −1: junk."""
        places: Int[np.ndarray, " N"] = self.whole[self.place]
        return places

    def review(self) -> Review:
        """Return what came of the edits."""
        return Review(
            cluster=np.array([*self.ids, JUNK], dtype=np.int32)[self._standing_places()],
            confirmed=self.confirmed,
            standing=frozenset(self.ids[number] for number in self.whole[: len(self.ids)].tolist()),
            names=self.names,
            descriptions=self.descriptions,
            gone=tuple(self.gone),
        )


def correct(
    table: ImageTable,
    prototypes: Prototypes,
    embeddings: Callable[[], Float[np.ndarray, "N D"]],
    edits: Sequence[Edit],
) -> Corrected:
    """Return a run as its edits leave it; embeddings are asked for only if images changed clusters.

    A prototype is the normalised mean of its cluster's images where these are others than training's. Clusters that
    lost all their images are none; where every image is junk, no cluster may be left.
    """
    review = replay(table.images, table.cluster, prototypes.ids, edits)
    changed = review.cluster != table.cluster
    regrouped = bool(changed.any()) or review.standing != set(prototypes.ids.tolist())
    if regrouped:
        touched = np.union1d(table.cluster[changed], review.cluster[changed])
        prototypes = _prototypes(table, prototypes, embeddings(), review, touched)
        table = _table(table, prototypes, embeddings(), review, touched)
    return Corrected(
        table=table,
        prototypes=prototypes,
        clusters=gather_clusters(prototypes, table.cluster, review.names, review.descriptions),
        confirmed=review.confirmed,
        gone=review.gone,
        edited=bool(edits),
        regrouped=regrouped,
    )


def _prototypes(
    table: ImageTable,
    trained: Prototypes,
    embeddings: Float[np.ndarray, "N D"],
    review: Review,
    touched: Int[np.ndarray, " T"],
) -> Prototypes:
    held = set(review.cluster.tolist())
    empty_before = set(trained.ids.tolist()) - set(table.cluster.tolist())
    ids = np.array(sorted(review.standing & (held | empty_before)), dtype=np.int64)
    vectors = np.zeros((len(ids), trained.vectors.shape[1]), dtype=np.float32)
    kept = np.isin(ids, np.setdiff1d(trained.ids, touched))
    vectors[kept] = trained.vectors[rows_of(ids[kept], trained.ids)]
    for place in np.flatnonzero(~kept):
        mean = embeddings[review.cluster == ids[place]].mean(axis=0, dtype=np.float64)
        vectors[place] = mean / max(float(np.linalg.norm(mean)), np.finfo(np.float64).tiny)
    return Prototypes(vectors, ids)


def _table(
    table: ImageTable,
    prototypes: Prototypes,
    embeddings: Float[np.ndarray, "N D"],
    review: Review,
    touched: Int[np.ndarray, " T"],
) -> ImageTable:
    """Return the table with the clusters of the review; of junk, confidence and distance stay as they were found."""
    confidence, distance = table.confidence.copy(), table.distance.copy()
    sorted_out = np.flatnonzero(review.cluster != JUNK)
    block = min(BLOCK, max(1, CELLS // max(1, len(prototypes.ids))))
    for start in range(0, len(sorted_out), block):
        rows = sorted_out[start : start + block]
        cosines = embeddings[rows] @ prototypes.vectors.T
        own = cosines[np.arange(len(rows)), rows_of(review.cluster[rows], prototypes.ids)]
        weight = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / CONFIDENCE_TEMPERATURE).sum(axis=1)
        confidence[rows] = np.exp((own - cosines.max(axis=1)) / CONFIDENCE_TEMPERATURE) / weight
        moved = np.isin(review.cluster[rows], touched)
        distance[rows[moved]] = 1 - own[moved]
    return replace(table, cluster=review.cluster, confidence=confidence, distance=distance)
