"""Corrections applied to a run's clusters; everything that shows or exports corrected clusters goes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from propos.runs.arrays import Vectors
from propos.runs.clusters import CONFIDENCE_TEMPERATURE, Cluster, Prototypes, gather_clusters, rows_of
from propos.runs.edits import Confirm, Cut, Describe, Edit, Junk, Merge, Move, Redo, Rename, Split, Undo, Wrong
from propos.runs.tables import ImageTable
from propos.runs.tree import Tree

JUNK = -1  # the cluster id of images that belong to none
NOWHERE = -2  # no image
UNCONFIRMED, REVIEWED, AUDITED, MOVED, WRONG = range(5)  # how an image came to be in its cluster for certain, or not
HOW = {None: REVIEWED, "reviewed": REVIEWED, "audited": AUDITED}
BLOCK = 65_536  # images whose cosines are computed at once, if clusters are few
CELLS = 128 * BLOCK  # cosines that are computed at once


@dataclass(frozen=True)
class Corrections:
    """The combined effect of all edits: each image's cluster, confirmed images, names and descriptions."""

    cluster: Int[np.ndarray, " N"]  # ids; −1: junk
    how: UInt8[np.ndarray, " N"]  # whether a person reviewed, audited or moved the image, or called it wrong
    whole: dict[int, int]  # of each cluster's id, the id of the cluster that it is part of by now: mostly its own
    names: dict[int, str]
    descriptions: dict[int, str]
    gone: tuple[str, ...]  # images that edits name and the run does not have

    @property
    def standing(self) -> frozenset[int]:
        """The ids of the clusters that were not merged into another."""
        return frozenset(self.whole.values())


@dataclass(frozen=True)
class CorrectedRun:
    """A run with its corrections applied; without any, as training left it."""

    table: ImageTable  # its clusters are ids; −1: junk
    prototypes: Prototypes
    clusters: tuple[Cluster, ...]
    how: UInt8[np.ndarray, " N"]  # REVIEWED, AUDITED, MOVED, WRONG or UNCONFIRMED
    whole: dict[int, int]  # of each cluster's id, the id of the cluster that it is part of by now
    gone: tuple[str, ...]
    edited: bool  # there are corrections
    regrouped: bool  # images changed clusters, so some prototypes differ from training's

    @property
    def confirmed(self) -> Bool[np.ndarray, " N"]:
        """A mask of the images that a person confirmed or put into their cluster."""
        confirmed: Bool[np.ndarray, " N"] = (self.how != UNCONFIRMED) & (self.how != WRONG)
        return confirmed

    @property
    def junk(self) -> Bool[np.ndarray, " N"]:
        """A mask of the images that are junk."""
        junk: Bool[np.ndarray, " N"] = self.table.cluster == JUNK
        return junk

    def names(self) -> dict[int, str | None]:
        """Return the name of each cluster by its id; None if it has no name."""
        return {cluster.id: cluster.name for cluster in self.clusters}


def replay(
    images: Sequence[str],
    cluster: Int[np.ndarray, " N"],
    ids: Int[np.ndarray, " K"],
    edits: Sequence[Edit],
    tree: Tree | None = None,
) -> Corrections:
    """Apply edits in order to the clusters that a run found; edits that were undone are skipped.

    An edit of a cluster that was merged into another applies to that other cluster. An edit of a cluster whose split
    was undone has no effect. Without the run's tree, cuts have none either.
    """
    counting = counting_edits(edits)
    splits = sum(isinstance(edit, Split) for edit in edits)
    state = _State(_rows_named(images, edits), cluster, ids, splits, tree)
    for edit in edits:
        if edit.id in counting:
            state.apply(edit)
    return state.corrections()


def _rows_named(images: Sequence[str], edits: Sequence[Edit]) -> dict[str, int]:
    """Return the rows of the images that edits name: of ten million images, all rows would take a gigabyte."""
    named = {
        name for edit in edits if isinstance(edit, Split | Move | Junk | Confirm | Wrong) for name in edit.images or ()
    }
    return {name: row for row, name in enumerate(images) if name in named} if named else {}


def counting_edits(edits: Sequence[Edit]) -> set[str]:
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

    Clusters are numbered in order of appearance, the run's first and then the others of its tree, so that an array maps
    each to the cluster it was merged into, or that it is part of by the present cut.
    """

    def __init__(
        self,
        rows: dict[str, int],
        cluster: Int[np.ndarray, " N"],
        ids: Int[np.ndarray, " K"],
        splits: int,
        tree: Tree | None,
    ) -> None:
        self.rows = rows  # of the images that edits name
        self.tree = tree
        self.ids: list[int] = ids.tolist()
        if tree is not None:
            self.ids += sorted(set(tree.ids).difference(self.ids))
        self.number = {each: number for number, each in enumerate(self.ids)}
        # The number of the cluster that each is part of by now, mostly its own; junk, −1, is the last.
        self.whole = np.append(np.arange(len(self.ids) + splits), JUNK)
        self.place = rows_of(cluster, ids)  # the number under which an image was put somewhere; −1: junk
        self.open: set[int] = set()  # nodes of the tree that are divided
        if tree is not None:
            self.place = np.array([self.number[leaf] for leaf in tree.leaves])[tree.leaf]
            self._cut(tree, tree.root, tree.above(ids.tolist()))
        self.how = np.zeros(len(cluster), dtype=np.uint8)
        # Single elements are written many times faster through these.
        self._place, self._how, self._whole = self.place.data, self.how.data, self.whole.data
        self.names: dict[int, str] = {}
        self.descriptions: dict[int, str] = {}
        self.gone: dict[str, None] = {}

    def apply(self, edit: Edit) -> None:
        """Apply an edit."""
        match edit:
            case Move():
                self._put(edit.images, self._standing(edit.into))
            case Confirm(images=None):
                self.how[self._members(edit.cluster)] = HOW[edit.how]
            case Confirm():
                self._judge(edit.images, HOW[edit.how])
            case Wrong():
                self._judge(edit.images, WRONG)
            case Junk(images=None):
                members = self._members(edit.cluster)
                self.place[members], self.how[members] = JUNK, UNCONFIRMED
            case Junk():
                for row in self._rows_of(edit.images):
                    self._place[row], self._how[row] = JUNK, UNCONFIRMED
            case Rename():
                self._set_text(self.names, edit.cluster, edit.name)
            case Describe():
                self._set_text(self.descriptions, edit.cluster, edit.text)
            case Merge():
                self._merge(edit.clusters, edit.into)
            case Cut():
                if self.tree is not None and edit.node in self.number:
                    self._divide(self.tree, edit)
            case Split():
                self.number[edit.into] = len(self.ids)
                self.ids.append(edit.into)
                self._put(edit.images, self._standing(edit.into))

    def _standing(self, cluster: int) -> int | None:
        """Return the number of the cluster that an id refers to now; None if its split was undone."""
        number = self.number.get(cluster)
        return None if number is None else self._whole[number]

    def _divide(self, tree: Tree, cut: Cut) -> None:
        """Apply a cut; what was confirmed of a divided cluster is not confirmed of its parts.

        An image that was wrong in a cluster may be right in a larger one.
        """
        before, wrong = self._standing_places(), self.how == WRONG
        divided = np.isin(before, self._cut(tree, cut.node, cut.open))
        joined = ~divided & (self._standing_places() != before)
        self.how[(divided & ~wrong) | (joined & wrong)] = UNCONFIRMED

    def _cut(self, tree: Tree, node: int, opened: Iterable[int]) -> list[int]:
        """Regroup a branch of the tree, and what was merged into it; return the numbers of its open nodes."""
        cluster, there = tree.cut(node, opened)
        now = np.arange(len(self.whole))
        inside = [self.number[each] for each in cluster]
        now[inside] = [self.number[each] for each in cluster.values()]
        known = self.whole >= 0
        self.whole[known] = now[self.whole[known]]
        self.whole[inside] = now[inside]
        self.open = self.open.difference(cluster).union(there)
        return [self.number[each] for each in there]

    def _set_text(self, texts: dict[int, str], cluster: int, text: str | None) -> None:
        """Set or remove the text of a cluster; an open node of the tree has one of its own."""
        number = self.number[cluster] if cluster in self.open else self._standing(cluster)
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
                self._place[row], self._how[row] = number, MOVED

    def _judge(self, images: Sequence[str] | None, how: int) -> None:
        for row in self._rows_of(images):
            if self._place[row] != JUNK:
                self._how[row] = how

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
            how=self.how,
            whole={each: self.ids[self._whole[number]] for each, number in self.number.items()},
            names=self.names,
            descriptions=self.descriptions,
            gone=tuple(self.gone),
        )


def correct(
    table: ImageTable,
    prototypes: Prototypes,
    embeddings: Callable[[], Vectors],
    edits: Sequence[Edit],
    tree: Tree | None = None,
) -> CorrectedRun:
    """Apply corrections to a run; embeddings are read only if images changed clusters.

    If a cluster's images changed, its prototype is their normalised mean. Clusters that lost all their images are
    removed; if every image is junk, no cluster is left.
    """
    corrections = replay(table.images, table.cluster, prototypes.ids, edits, tree)
    changed = corrections.cluster != table.cluster
    regrouped = bool(changed.any()) or corrections.standing != set(prototypes.ids.tolist())
    if regrouped:
        touched = np.union1d(table.cluster[changed], corrections.cluster[changed])
        prototypes = _prototypes(table, prototypes, embeddings(), corrections, touched)
        table = _table(table, prototypes, embeddings(), corrections, touched)
    return CorrectedRun(
        table=table,
        prototypes=prototypes,
        clusters=_clusters(prototypes, table, corrections, tree),
        how=corrections.how,
        whole=corrections.whole,
        gone=corrections.gone,
        edited=bool(edits),
        regrouped=regrouped,
    )


def _clusters(
    prototypes: Prototypes, table: ImageTable, corrections: Corrections, tree: Tree | None
) -> tuple[Cluster, ...]:
    """Return the clusters, each with the named nodes above it in the tree."""
    clusters = gather_clusters(prototypes, table.cluster, corrections.names, corrections.descriptions)
    if tree is None or not corrections.names:
        return clusters

    def above(cluster: int) -> tuple[tuple[int, str], ...]:
        named = [node for node in tree.ancestors(cluster) if node in corrections.names]
        return tuple((node, corrections.names[node]) for node in reversed(named))

    return tuple(replace(each, above=above(each.id)) for each in clusters)


def _prototypes(
    table: ImageTable,
    trained: Prototypes,
    embeddings: Vectors,
    corrections: Corrections,
    touched: Int[np.ndarray, " T"],
) -> Prototypes:
    held = set(np.unique(corrections.cluster).tolist())
    empty_before = set(trained.ids.tolist()) - set(np.unique(table.cluster).tolist())
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
