"""A picture of the clusters of a run that trains, for those who watch it."""

from __future__ import annotations

import time
from contextlib import suppress

from PIL import Image

from propos.data import Source
from propos.distributed import world_size
from propos.runs import PROGRESS, RunFolder, write_atomically
from propos.training.e_step import Assignment
from propos.training.sheet import closeness, sheet

PREVIEW = "preview.png"
SHARE = 0.02  # of the elapsed time, at most
FIRST = 2.0  # seconds until the first picture, at the earliest


class Preview:
    """Draws the most typical images of each cluster into the run folder, if its progress is recorded there."""

    def __init__(self, run: RunFolder | None) -> None:
        shown = run is not None and world_size() == 1 and (run.path / PROGRESS).is_file()
        self.path = run.path / PREVIEW if run is not None and shown else None
        self._began, self._spent, self._needed = time.monotonic(), 0.0, SHARE * FIRST

    def show(self, assignment: Assignment, source: Source) -> None:
        """Draw the clusters of an E-step, unless this would take too large a share of the time."""
        begin = time.monotonic()
        allowed = SHARE * (begin - self._began) - self._spent
        if self.path is None or self._needed > allowed:
            return

        def fits(seconds: float) -> bool:
            self._needed = seconds
            return seconds <= allowed

        near = closeness(assignment, len(source))
        drawn = None if near is None else sheet(source, assignment, near, fits)
        if drawn is not None:
            picture = Image.fromarray(drawn)
            with suppress(OSError):  # a full disk: the run has more important files
                write_atomically(self.path, lambda file: picture.save(file, "PNG"))
            self._needed = time.monotonic() - begin
        self._spent += time.monotonic() - begin

    def remove(self) -> None:
        """Remove the picture: the run has its results."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
