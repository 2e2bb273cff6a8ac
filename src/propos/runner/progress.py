"""Who watches a run while it is planned and carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from propos.common.work import Working, unseen
from propos.training import Fitted, Progress, Silent

Stopping = Callable[[], AbstractContextManager[Callable[[], bool]]]


@contextmanager
def never_stop() -> Iterator[Callable[[], bool]]:
    """Train to the end, whoever asks."""
    yield lambda: False


class Reporter(Progress, Protocol):
    """Shows what becomes of a request: the command line draws bars, Python programs hear of warnings alone."""

    quiet: bool  # notes are not read, so that what is made for them alone can be left out

    def expect(self, epochs: int, seconds: float) -> None:
        """So many epochs will take about so long."""
        ...

    def done(self, run: Path, fitted: Fitted, seconds: float) -> None:
        """The results are written."""
        ...


class SilentReporter(Silent):
    """Shows nothing, but for long pieces of work and warnings where it is told how."""

    quiet = True

    def __init__(self, working: Working = unseen, warn: Callable[[str], object] = lambda text: None) -> None:
        super().__init__(warn, working)

    def expect(self, epochs: int, seconds: float) -> None:
        """Ignore it."""

    def done(self, run: Path, fitted: Fitted, seconds: float) -> None:
        """Ignore it."""
