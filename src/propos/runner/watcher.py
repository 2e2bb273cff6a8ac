"""Taking new files of a folder into a finished run, as they come.

What was taken is in a log (`propos.runs.arrivals`). The images of the folder are a run of their own inside the run that
took them, with its clusters, names and networks: it is opened, reviewed and exported like any other. Its tables follow
from the log and are written again after each batch, so a kill at any moment costs one batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from propos.clustering import assign
from propos.common.errors import InputError
from propos.data import Selection, Source, readable
from propos.evaluation.rejection import distance_limits
from propos.runner.arrivals_run import write_run
from propos.runner.sources import open_like
from propos.runs import Run, rows_of
from propos.runs.arrivals import FOLDER, Arrival, Arrivals
from propos.training import Model
from propos.training.model import predict_from_cosines

BATCH = 256  # images that are taken in at once
Stamp = tuple[int, int]  # size and time of a file


@dataclass(frozen=True)
class Poll:
    """The result of polling the folder: images that were taken in, all that are, and files that are not ready."""

    fresh: list[Arrival]
    taken: int
    waiting: int


class Watch:
    """A folder that is watched, and the run that takes in its images."""

    def __init__(
        self, run: Run, images: Path, device: torch.device, share: float, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.run, self.images, self.folder, self.stop = run, images, run.path / FOLDER, stop
        self.model = Model.from_run(run, device)
        table = run.corrected.table
        self.limits = distance_limits(table.cluster, table.distance, self.model.ids, share)
        self.folder.mkdir(exist_ok=True)
        self.log = Arrivals.open(self.folder, run.prototypes.vectors.shape[1])
        self._rows = {self._key(line): row for row, line in enumerate(self.log.lines)}
        self._same_file = {line.file: row for row, line in enumerate(self.log.lines)}
        self._stamps: dict[str, Stamp] = {}  # at the last poll
        self._written: list[int] | None = None  # rows of the log that the tables hold

    def poll(self, settled: bool = False) -> Poll:
        """Look at the folder once and take in the files that are ready.

        A file is ready if it can be decoded and has not changed since the last poll; with `settled`, if it can be.
        """
        try:
            with open_like(self.model.config, str(self.images), keep="use") as source:
                return self._poll(source, settled)
        except InputError:
            if self.images.is_dir() and not any(self.images.rglob("*.*")):
                return Poll([], 0, 0)  # no file yet
            raise

    def _poll(self, source: Source, settled: bool) -> Poll:
        names = list(source.image_names())
        stamps = {name: stamp for name in names if (stamp := _stamp(self.images / name)) is not None}
        ready = [place for place, name in enumerate(names) if settled or self._stamps.get(name) == stamps.get(name)]
        self._stamps = stamps
        keys = {place: (names[place], *stamps[names[place]]) for place in ready if names[place] in stamps}
        new = [place for place, key in keys.items() if key not in self._rows]
        fresh: list[Arrival] = []
        for start in range(0, len(new), BATCH):
            if self.stop():
                break
            fresh += self._take(Selection(source, np.array(new[start : start + BATCH])), stamps)
        rows = {name: self._rows[name, *stamp] for name, stamp in stamps.items() if (name, *stamp) in self._rows}
        if rows and list(rows.values()) != self._written:
            write_run(self.run, source, self.images, self.log, rows)
            self._written = list(rows.values())
        return Poll(fresh, len(rows), len(names) - len(rows) + len(source.skipped))

    def _take(self, images: Selection, stamps: Mapping[str, Stamp]) -> list[Arrival]:
        """Assign a batch and add it to the log; a file whose content was taken before keeps what was computed."""
        names = list(images.image_names())
        digests = [_digest(self.images / name) for name in names]
        known = {place: self._same_file[each] for place, each in enumerate(digests) if each in self._same_file}
        unseen = [place for place in range(len(names)) if digests[place] is not None and place not in known]
        found, vectors = self._predict(Selection(images, np.array(unseen, np.int64)), [names[each] for each in unseen])
        stored = self.log.embeddings() if known else vectors
        fresh, rows = [], []
        for place, name in enumerate(names):
            size, time = stamps[name]
            told = self.log.lines[known[place]] if place in known else found.get(name)
            if told is None or _stamp(self.images / name) != (size, time):
                continue  # it cannot be decoded, or changed meanwhile: the next poll sees it again
            fresh.append(told.model_copy(update={"image": name, "file": digests[place], "size": size, "time": time}))
            rows.append(stored[known[place]] if place in known else vectors[unseen.index(place)])
        if fresh:
            self.log.append(fresh, np.stack(rows))
        first = len(self.log.lines) - len(fresh)
        for row, line in enumerate(fresh, start=first):
            self._rows[self._key(line)] = self._same_file[line.file] = row
        return fresh

    def _predict(self, images: Selection, names: list[str]) -> tuple[dict[str, Arrival], Float[np.ndarray, "n D"]]:
        """Return what the model says of images that can be decoded, by name, and the embeddings of all."""
        if not names:
            return {}, np.empty((0, self.log.width), np.float32)
        vectors = self.model.embeddings(images)
        if self.model.by_head:
            said = self.model.predict(images)
        else:
            rows, cosines = assign(vectors, self.model.prototypes)
            said = predict_from_cosines(cosines, rows, self.model.ids)
        far = said.distance > self.limits[rows_of(said.cluster, self.model.ids)]
        good = readable(images, np.arange(len(images)))
        columns = (said.cluster.tolist(), said.confidence.tolist(), said.distance.tolist(), far.tolist())
        return {
            names[place]: Arrival(
                image=names[place], file="0" * 32, size=0, time=0,
                cluster=cluster, confidence=confidence, distance=distance, rejected=rejected,
            )
            for place, (cluster, confidence, distance, rejected) in enumerate(zip(*columns, strict=True))
            if good[place]
        }, vectors.cpu().numpy()  # fmt: skip

    @staticmethod
    def _key(line: Arrival) -> tuple[str, int, int]:
        return line.image, line.size, line.time


def _stamp(path: Path) -> Stamp | None:
    """Return a file's size and time; None if it is gone."""
    with suppress(OSError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns
    return None


def _digest(path: Path) -> str | None:
    with suppress(OSError), path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return None
