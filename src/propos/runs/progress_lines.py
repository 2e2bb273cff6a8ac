"""Progress of a run as lines in its folder: any program can read them while the run is another process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PROGRESS = "progress.jsonl"
LEAST_SECONDS = 0.5  # between two lines
SHARE = 0.002  # of the elapsed time between two lines, so that a long run writes a few thousand at most
TAIL = 4096  # bytes that are read from the end


class ProgressLines:
    """Appends lines to the progress file of an existing folder; a line that cannot be written is left out."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS
        self._started = self._last = time.monotonic()

    @contextmanager
    def task(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Start a task; yields a function to call with the amount done and the total."""
        first: tuple[float, int] | None = None  # a task may start late, and may continue an earlier one
        self._write({"doing": name})

        def update(done: int, total: int) -> None:
            nonlocal first
            first = first or (time.monotonic(), done)
            if self._due():
                left = seconds_left(time.monotonic() - first[0], done - first[1], total - done)
                self._write({"doing": name, "done": done, "total": total, "left": left})

        yield update

    def remove(self) -> None:
        """Remove the file: the command is over."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _due(self) -> bool:
        now = time.monotonic()
        return now - self._last >= max(LEAST_SECONDS, SHARE * (now - self._started))

    def _write(self, line: Mapping[str, Any]) -> None:
        self._last = time.monotonic()
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": round(time.time(), 1), **line}) + "\n")


def seconds_left(elapsed: float, done: int, rest: int) -> float | None:
    """Return the remaining seconds of a task after `done` in `elapsed` seconds; None if it cannot be told."""
    return round(elapsed * rest / done, 1) if done > 0 and rest >= 0 else None


def read_progress(folder: Path) -> dict[str, Any] | None:
    """Return the last whole line of a run folder's progress file; None if there is none."""
    try:
        with (folder / PROGRESS).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = file.read(TAIL).splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError):
            read = json.loads(line)
            if isinstance(read, dict) and isinstance(read.get("doing"), str):
                return read
    return None
