"""A reporter that also writes the progress of a run into its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from propos.runs import ProgressLines

if TYPE_CHECKING:
    from propos.clustering import Suggestion
    from propos.runner.progress import Reporter
    from propos.training import Fitted


class RecordingReporter:
    """Passes everything on to another reporter, and writes it to a run folder's progress file."""

    def __init__(self, inner: Reporter, folder: Path) -> None:
        self.inner, self.quiet = inner, inner.quiet
        self.lines = ProgressLines(folder)
        self._steps = self._total = 0
        self._update: Callable[[int, int], None] | None = None

    @contextmanager
    def show_task(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Show a long task and write its progress."""
        with self.inner.show_task(name) as shown, self.lines.task(name) as written:

            def update(done: int, total: int) -> None:
                shown(done, total)
                written(done, total)

            yield update

    def begin(self, epochs: int, steps: int, epoch: int) -> None:
        """Report that training starts, or resumes, at an epoch."""
        self.inner.begin(epochs, steps, epoch)
        self._steps, self._total = steps, epochs * steps
        with self.lines.task("Training" if epochs else "Finding clusters") as self._update:
            self._update(epoch * steps, self._total)

    def step(self, epoch: int, step: int) -> None:
        """Report a finished step."""
        self.inner.step(epoch, step)
        if self._update is not None:
            self._update(epoch * self._steps + step, self._total)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Report a finished epoch."""
        self.inner.epoch(record)

    def suggestion(self, suggestion: Suggestion) -> None:
        """Report the chosen number of clusters."""
        self.inner.suggestion(suggestion)

    def note(self, text: str) -> None:
        """Report a note."""
        self.inner.note(text)

    def warn(self, text: str) -> None:
        """Report a warning."""
        self.inner.warn(text)

    def expect(self, epochs: int, seconds: float) -> None:
        """Report the expected duration of training."""
        self.inner.expect(epochs, seconds)

    def done(self, run: Path, fitted: Fitted, seconds: float) -> None:
        """Report that the results are written."""
        self.inner.done(run, fitted, seconds)
