"""Corrections applied to a run's clusters; everything that shows or exports corrected clusters goes through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from propos.runs.arrays import Vectors
from propos.runs.clusters import CONFIDENCE_TEMPERATURE, Cluster, Prototypes, gather_clusters, rows_of
from propos.runs.edits import Confirm, Describe, Edit, Junk, Merge, Move, Redo, Rename, Split, Undo
from propos.runs.tables import ImageTable

JUNK = -1  # the cluster id of images that belong to none
NOWHERE = -2  # no image
BLOCK = 65_536  # images whose cosines are computed at once, if clusters are few
CELLS = 128 * BLOCK  # cosines that are computed at once


@dataclass(frozen=True)
class Corrections:
    """The combined effect of all edits: each image's cluster, confirmed images, names and descriptions."""

    cluster: Int[np.ndarray, " N"]  # ids; −1: junk
    confirmed: Bool[np.ndarray, " N"]  # a person confirmed the image or put it there
    standing: frozenset[int]  # ids of clusters that were not merged into another
    names: dict[int, str]
    descriptions: dict[int, str]
    gone: tuple[str, ...]  # images that edits name and the run does not have


@dataclass(frozen=True)
class CorrectedRun:
    """A run with its corrections applied; without any, as training left it."""

    table: ImageTable  # its clusters are ids; −1: junk
    prototypes: Prototypes
    clusters: tuple[Cluster, ...]
    confirmed: Bool[np.ndarray, " N"]
    gone: tuple[str, ...]
    edited: bool  # there are corrections
    regrouped: bool  # images changed clusters, so some prototypes differ from training's

    @property
    def junk(self) -> Bool[np.ndarray, " N"]:
        """A mask of the images that are junk."""
        junk: Bool[np.ndarray, " N"] = self.table.cluster == JUNK
        return junk

    def names(self) -> dict[int, str | None]:
        """Return the name of each cluster by its id; None if it has no name."""
        return {cluster.id: cluster.name for cluster in self.clusters}


def replay(
    images: Sequence[str], cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"], edits: Sequence[Edit]
) -> Corrections:
    """Apply edits in order to the clusters that a run found; edits that were undone are skipped.

    An edit of a cluster that was merged into another applies to that other cluster. An edit of a cluster whose split
    was undone has no effect.
    """
    counting = _counting(edits)
    splits = sum(isinstance(edit, Split) for edit in edits)
    state = _State(images, cluster, ids, splits)
    for edit in edits:
        if edit.id in counting:
            state.apply(edit)
    return state.corrections()


def _counting(edits: Sequence[Edit]) -> set[str]:
    """Return the ids of edits that are not undone."""
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
    """The state while edits are applied: each image's cluster, merged clusters, names and descriptions.

    Clusters are numbered in order of appearance, so that an array maps each to the cluster it was merged into.
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
        """Apply an edit."""
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
                self._set_text(self.names, edit.cluster, edit.name)
            case Describe():
                self._set_text(self.descriptions, edit.cluster, edit.text)
            case Merge():
                self._merge(edit.clusters, edit.into)
            case Split():
                self.number[edit.into] = len(self.ids)
                self.ids.append(edit.into)
                self._put(edit.images, self._standing(edit.into))

    def _standing(self, cluster: int) -> int | None:
        """Return the number of the cluster that an id refers to now; None if its split was undone."""
        number = self.number.get(cluster)
        return None if number is None else self._whole[number]

    def _set_text(self, texts: dict[int, str], cluster: int, text: str | None) -> None:
        number = self._standing(cluster)
        if number is not None and text is None:
            texts.pop(self.ids[number], None)
        elif number is not None and text is not None:
            texts[self.ids[number]] = text

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
        """Return the rows of the images that are in a cluster now."""
        assert cluster is not None
        number = self._standing(cluster)
        return np.flatnonzero(self._standing_places() == (NOWHERE if number is None else number))

    def _standing_places(self) -> Int[np.ndarray, " N"]:
        """Return the number of each image's cluster now; −1: junk."""
        places: Int[np.ndarray, " N"] = self.whole[self.place]
        return places

    def corrections(self) -> Corrections:
        """Return the combined effect of the edits."""
        return Corrections(
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
    embeddings: Callable[[], Vectors],
    edits: Sequence[Edit],
) -> CorrectedRun:
    """Apply corrections to a run; embeddings are read only if images changed clusters.

    If a cluster's images changed, its prototype is their normalised mean. Clusters that lost all their images are
    removed; if every image is junk, no cluster is left.
    """
    corrections = replay(table.images, table.cluster, prototypes.ids, edits)
    changed = corrections.cluster != table.cluster
    regrouped = bool(changed.any()) or corrections.standing != set(prototypes.ids.tolist())
    if regrouped:
        touched = np.union1d(table.cluster[changed], corrections.cluster[changed])
        prototypes = _prototypes(table, prototypes, embeddings(), corrections, touched)
        table = _table(table, prototypes, embeddings(), corrections, touched)
    return CorrectedRun(
        table=table,
        prototypes=prototypes,
        clusters=gather_clusters(prototypes, table.cluster, corrections.names, corrections.descriptions),
        confirmed=corrections.confirmed,
        gone=corrections.gone,
        edited=bool(edits),
        regrouped=regrouped,
    )


def _prototypes(
    table: ImageTable,
    trained: Prototypes,
    embeddings: Vectors,
    corrections: Corrections,
    touched: Int[np.ndarray, " T"],
) -> Prototypes:
    held = set(corrections.cluster.tolist())
    empty_before = set(trained.ids.tolist()) - set(table.cluster.tolist())
    ids = np.array(sorted(corrections.standing & (held | empty_before)), dtype=np.int64)
    vectors = np.zeros((len(ids), trained.vectors.shape[1]), dtype=np.float32)
    kept = np.isin(ids, np.setdiff1d(trained.ids, touched))
    vectors[kept] = trained.vectors[rows_of(ids[kept], trained.ids)]
    for place in np.flatnonzero(~kept):
        mean = _mean(embeddings, np.flatnonzero(corrections.cluster == ids[place]))
        vectors[place] = mean / max(float(np.linalg.norm(mean)), np.finfo(np.float64).tiny)
    return Prototypes(vectors, ids)


def _mean(embeddings: Vectors, rows: Int[np.ndarray, " n"]) -> Float[np.ndarray, " D"]:
    """Return the mean of some embeddings in double precision, reading a block of them at a time."""
    total = np.zeros(embeddings.shape[1])
    for start in range(0, len(rows), BLOCK):
        total += embeddings[rows[start : start + BLOCK]].sum(axis=0, dtype=np.float64)
    return total / max(1, len(rows))


def _table(
    table: ImageTable,
    prototypes: Prototypes,
    embeddings: Vectors,
    corrections: Corrections,
    touched: Int[np.ndarray, " T"],
) -> ImageTable:
    """Return the table with corrected clusters; junk keeps the confidence and distance of training."""
    confidence, distance = table.confidence.copy(), table.distance.copy()
    sorted_out = np.flatnonzero(corrections.cluster != JUNK)
    block = min(BLOCK, max(1, CELLS // max(1, len(prototypes.ids))))
    for start in range(0, len(sorted_out), block):
        rows = sorted_out[start : start + block]
        cosines = embeddings[rows] @ prototypes.vectors.T
        own = cosines[np.arange(len(rows)), rows_of(corrections.cluster[rows], prototypes.ids)]
        weight = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / CONFIDENCE_TEMPERATURE).sum(axis=1)
        confidence[rows] = np.exp((own - cosines.max(axis=1)) / CONFIDENCE_TEMPERATURE) / weight
        moved = np.isin(corrections.cluster[rows], touched)
        distance[rows[moved]] = 1 - own[moved]
    return replace(table, cluster=corrections.cluster, confidence=confidence, distance=distance)
