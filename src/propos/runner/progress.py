"""Progress reporters: they show how a run is planned and trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from propos.common.progress import ShowTask, show_nothing
from propos.data import Skipped
from propos.training import Fitted, Progress, Silent

Stopping = Callable[[], AbstractContextManager[Callable[[], bool]]]


@contextmanager
def never_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that never asks to stop."""
    yield lambda: False


def describe_skipped(skipped: Sequence[Skipped]) -> str:
    """Return a sentence that names the first of the files that were skipped."""
    first = skipped[0]
    which = f"{len(skipped):,} files were skipped, the first" if len(skipped) > 1 else "1 file was skipped:"
    return f"{which} {first.path} ({first.reason})"


class Reporter(Progress, Protocol):
    """A progress reporter: the command line shows bars and notes, Python programs get warnings only."""

    quiet: bool  # notes are not shown, so that work for them alone can be skipped

    def expect(self, epochs: int, seconds: float) -> None:
        """Report the expected duration of training."""
        ...

    def done(self, run: Path, fitted: Fitted, seconds: float) -> None:
        """Report that the results are written."""
        ...


class SilentReporter(Silent):
    """A reporter that shows nothing but progress and warnings, and those only through the functions given."""

    quiet = True

    def __init__(self, show_task: ShowTask = show_nothing, warn: Callable[[str], object] = lambda text: None) -> None:
        super().__init__(warn, show_task)

    def expect(self, epochs: int, seconds: float) -> None:
        """Do nothing."""

    def done(self, run: Path, fitted: Fitted, seconds: float) -> None:
        """Do nothing."""
