"""Pictures of the clusters of a run that trains, for those who watch it."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from propos.data import Source
from propos.distributed import world_size
from propos.runs import PROGRESS, RunFolder, write_atomically
from propos.training.e_step import Assignment
from propos.training.scatter import POINTS, directions, scatter
from propos.training.sheet import closeness, sheet

PREVIEW, MAP = "preview.png", "preview-map.png"
SHARE = 0.02  # of the elapsed time, at most
FIRST = 2.0  # seconds until the first pictures, at the earliest


class Preview:
    """Draws the clusters' most typical images and a map into the run folder, if its progress is recorded there."""

    def __init__(self, run: RunFolder | None) -> None:
        shown = run is not None and world_size() == 1 and (run.path / PROGRESS).is_file()
        self.folder = run.path if run is not None and shown else None
        self._began, self._spent, self._needed = time.monotonic(), 0.0, SHARE * FIRST
        self._axes: Float[np.ndarray, "2 D"] | None = None

    def show(self, assignment: Assignment, source: Source) -> None:
        """Draw the clusters of an E-step, unless this would take too large a share of the time."""
        begin = time.monotonic()
        allowed = SHARE * (begin - self._began) - self._spent
        if self.folder is None or self._needed > allowed:
            return

        def fits(seconds: float) -> bool:
            self._needed = seconds
            return seconds <= allowed

        near = closeness(assignment, len(source))
        drawn = None if near is None else sheet(source, assignment, near, fits)
        if drawn is not None:
            self._draw_map(assignment, self.folder / MAP)
            _write(self.folder / PREVIEW, drawn)  # the last: its time tells windows of both
            self._needed = time.monotonic() - begin
        self._spent += time.monotonic() - begin

    def _draw_map(self, assignment: Assignment, path: Path) -> None:
        self._axes = directions(assignment.prototypes.float().cpu().numpy(), self._axes)
        if self._axes is not None:
            every = -(-len(assignment.labels) // POINTS)
            embeddings, labels = assignment.embeddings[::every], assignment.labels[::every]
            _write(path, scatter(embeddings.float().cpu().numpy(), labels.cpu().numpy(), self._axes))

    def remove(self) -> None:
        """Remove the pictures: the run has its results."""
        if self.folder is not None:
            for name in (PREVIEW, MAP):
                (self.folder / name).unlink(missing_ok=True)


def _write(path: Path, drawn: UInt8[np.ndarray, "H W 3"]) -> None:
    picture = Image.fromarray(drawn)
    with suppress(OSError):  # a full disk: the run has more important files
        write_atomically(path, lambda file: picture.save(file, "PNG"))
