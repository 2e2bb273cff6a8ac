"""Reading a run folder: every file is checked once, when it is first read."""

from __future__ import annotations

import re
import shlex
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from propos.common.errors import InputError, no_such_run, shown
from propos.common.plain import read_text
from propos.common.plurals import counted
from propos.config import Config, from_yaml
from propos.runs.arrays import VectorFile, check_shape, read_finite, read_unit_vectors
from propos.runs.clusters import Cluster, Prototypes, gather_clusters
from propos.runs.corrections import CorrectedRun, correct
from propos.runs.edit_log import EditLog
from propos.runs.proposals import Proposal, State, read_proposals, states_of
from propos.runs.schema import Record, RunInfo, Suggestion, read_history, read_info, read_skipped, read_suggestion
from propos.runs.table_reader import check_table, read_table
from propos.runs.tables import ImageTable
from propos.runs.tree import Tree, read_tree
from propos.runs.weights import check_weights, read_weights

CONFIG, INFO = "config.yaml", "run.json"
TABLE, PROTOTYPES, EMBEDDINGS, MAP = "clusters.parquet", "prototypes.npy", "embeddings.npy", "map.npy"
WEIGHTS, SUGGESTION, SKIPPED = "model.safetensors", "suggestion.json", "skipped.csv"
SNAPSHOT = re.compile(r"epoch-(\d{4,9})\.(npy|safetensors)")
CHANNELS = (1, 3)
MOST_NAMED = 20  # images that a note names


class Run:
    """A run folder, read-only.

    Opening it checks texts, headers and shapes; the content of large arrays is checked when they are first read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._corrected: tuple[int, CorrectedRun] | None = None  # by the number of edits
        self._tree: Tree | None = None
        _refuse_devices(path)
        self.info: RunInfo = read_info(path / INFO)
        self.config: Config = _complete_config(path / CONFIG)
        self.history: list[Record] = read_history(path)
        self.suggestion: Suggestion | None = read_suggestion(path / SUGGESTION)
        self.skipped: list[tuple[str, str]] = read_skipped(path / SKIPPED)
        self.snapshots, self.kept_weights = self._check_snapshots()
        self._check_results()

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open and check an existing run."""
        path = Path(path)
        if not (path / INFO).is_file():
            if not path.exists():
                raise no_such_run(path)
            if path.is_file():
                raise InputError(f"{path}: is a file: give the run's folder{_folder_of(path)}")
            raise InputError(f"{path}: not a run (no run.json in it): create one with propos run SOURCE")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether the run is finished."""
        return self.info.status == "finished"

    @cached_property
    def table(self) -> ImageTable:
        """The cluster of each image, as training found it."""
        return read_table(self._result(TABLE), self.prototypes.ids)

    @cached_property
    def prototypes(self) -> Prototypes:
        """The prototypes of the clusters."""
        return Prototypes.in_order(read_unit_vectors(self._result(PROTOTYPES)))

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters by ascending id."""
        return gather_clusters(self.prototypes, self.table.cluster)

    @cached_property
    def edits(self) -> EditLog:
        """The log of corrections."""
        tree = self.tree()
        return EditLog(self.path, self.prototypes.ids.tolist(), [] if tree is None else tree.ids)

    def tree(self) -> Tree | None:
        """The tree of clusters; None if none was grown yet."""
        if self._tree is None:
            self._tree = read_tree(self.path, self.table.cluster, self.prototypes.ids)
        return self._tree

    def add_tree(self, tree: Tree) -> None:
        """Store the tree that was grown for the run."""
        tree.write(self.path)
        self._tree = tree
        self.edits.add_tree(tree.ids)

    @property
    def corrected(self) -> CorrectedRun:
        """Table, prototypes and clusters with all corrections that were read applied."""
        edits, known = list(self.edits.edits), self._corrected
        if known is None or known[0] != len(edits):
            known = len(edits), correct(self.table, self.prototypes, lambda: self.embedding_rows, edits, self.tree())
            self._corrected = known
        return known[1]

    def proposals(self) -> list[tuple[Proposal, State]]:
        """Read what programs proposed for the run, with the state that the corrections give each proposal."""
        proposals = read_proposals(self.path)
        return list(zip(proposals, states_of(proposals, self.edits.edits, self.corrected), strict=True))

    def refuse_all_junk(self) -> None:
        """Raise InputError if every image of the run was marked as junk."""
        if self.corrected.junk.all():
            raise InputError(self._all_junk)

    @property
    def _all_junk(self) -> str:
        undo = f"undo that: propos open {shlex.quote(str(self.path))}"
        return f"{self.path}: every image is marked as junk, so no cluster is left: {undo}"

    def notes_on_edits(self) -> list[str]:
        """Return warnings about the corrections: an incomplete last line, all images junk, images that are missing."""
        notes = [] if self.edits.note is None else [self.edits.note]
        notes += [self._all_junk] if self.corrected.junk.all() else []
        gone = self.corrected.gone
        if gone:
            first = ", ".join(shown(name, quoted=False) for name in gone[:MOST_NAMED])
            are = "is" if len(gone) == 1 else "are"
            rest = f" and {len(gone) - MOST_NAMED:,} more" if len(gone) > MOST_NAMED else ""
            notes.append(
                f"{self.edits.path}: contains edits of {counted(len(gone), 'image')} that {are} missing: {first}{rest}"
            )
        return notes

    @cached_property
    def embeddings(self) -> Float[np.ndarray, "N D"]:
        """The embedding of each image: a unit vector."""
        return read_unit_vectors(self._result(EMBEDDINGS))

    @cached_property
    def embedding_rows(self) -> VectorFile:
        """The embeddings, of which only those are read that are asked for."""
        return VectorFile(self._result(EMBEDDINGS))

    def weights(self, epoch: int | None = None) -> dict[str, np.ndarray]:
        """Read the final weights, or those kept after an epoch."""
        return read_weights(self.weights_file(epoch))

    def weights_file(self, epoch: int | None = None) -> Path:
        """Return the file of the final weights, or of those kept after an epoch."""
        if epoch is None:
            return self._result(WEIGHTS)
        if epoch not in self.kept_weights:
            kept = ", ".join(str(each) for each in self.kept_weights) or "none"
            raise InputError(f"{self.path}: kept no weights after epoch {epoch} (keep_epochs: {kept})")
        return self.kept_weights[epoch]

    def snapshot(self, epoch: int) -> Float[np.ndarray, "N D"]:
        """Read the embeddings that were kept after an epoch."""
        return read_unit_vectors(self.snapshots[epoch])

    def snapshot_rows(self, epoch: int) -> VectorFile:
        """Return the embeddings that were kept after an epoch, of which only those are read that are asked for."""
        return VectorFile(self.snapshots[epoch])

    def map(self) -> Float[np.ndarray, "N 2"] | None:
        """Read each image's position on the report's map; None if it has to be computed."""
        path, made_of = self.path / MAP, self._result(EMBEDDINGS)
        try:
            if path.stat().st_mtime_ns < made_of.stat().st_mtime_ns:
                return None
            check_shape(path, (len(self.table.images), 2), "a place for each image")
            return read_finite(path)
        except (InputError, OSError):
            return None  # it can be computed again

    def _result(self, name: str) -> Path:
        path = self.path / name
        if path.exists():
            return path
        if self.finished:
            raise InputError(f"{path}: missing, although the run is finished: restore it, or run again")
        raise InputError(f"{self.path}: has no {name} (status: {self.info.status}): finish the run with --resume first")

    def _check_snapshots(self) -> tuple[dict[int, Path], dict[int, Path]]:
        """Return the embeddings and the weights that were kept, by epoch."""
        kept: dict[int, Path] = {}
        weights: dict[int, Path] = {}
        for path in sorted((self.path / "snapshots").glob("*")):
            match = SNAPSHOT.fullmatch(path.name)
            if match is not None and match[2] == "npy":
                kept[int(match[1])] = path
            elif match is not None:
                check_weights(path)
                weights[int(match[1])] = path
        return kept, weights

    def _check_results(self) -> None:
        """Check the headers and shapes of all result files."""
        there = {name: (self.path / name).exists() for name in (PROTOTYPES, EMBEDDINGS, TABLE, WEIGHTS)}
        dimension = rows = None
        if there[PROTOTYPES]:
            shape = (self.config.clusters, None)
            _, dimension = check_shape(self.path / PROTOTYPES, shape, "the settings' clusters, and a dimension")
        if there[EMBEDDINGS]:
            rows, _ = check_shape(self.path / EMBEDDINGS, (None, dimension), "images, and the prototypes' dimension")
        if there[TABLE] and (found := check_table(self.path / TABLE)) != rows and rows is not None:
            raise InputError(f"{self.path / TABLE}: holds {found:,} images, but {EMBEDDINGS} {rows:,}")
        if there[WEIGHTS]:
            check_weights(self.path / WEIGHTS)
        for path in self.snapshots.values():
            check_shape(path, (rows, None), "images, and a dimension")


def _folder_of(path: Path) -> str:
    """Return the run folder that a given file belongs to, for the error message."""
    return f", {path.parent}" if (path.parent / INFO).is_file() else ""


def _refuse_devices(path: Path) -> None:
    """Refuse a folder with pipes or devices in the place of files: they may never end."""
    for folder in (path, path / "checkpoint", path / "snapshots"):
        for each in folder.iterdir() if folder.is_dir() else ():
            if each.exists() and not each.is_file() and not each.is_dir():
                raise InputError(f"{each}: is a pipe or a device, not a file")


def _complete_config(path: Path) -> Config:
    """Read a run's settings; pixel statistics and the number of clusters, or its range, must be set."""
    config = from_yaml(read_text(path), str(path))
    channels = [None if values is None else len(values) for values in (config.pixels.mean, config.pixels.std)]
    if channels[0] != channels[1] or channels[0] not in CHANNELS:
        raise InputError(f"{path}: pixels.mean and pixels.std: give one value for grey images, or three for colour")
    if config.clusters is None and config.suggest.range is None:
        raise InputError(f"{path}: clusters: has neither a number nor, in suggest.range, a range to choose from")
    if config.clusters is not None and config.clusters < 2:
        raise InputError(f"{path}: clusters = {config.clusters}: must be at least 2")
    return config
