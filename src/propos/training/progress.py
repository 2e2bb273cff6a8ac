"""Progress callbacks of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from propos.clustering import Suggestion
from propos.common.progress import ShowTask, show_nothing


class Progress(Protocol):
    """A progress reporter of a run."""

    @property
    def show_task(self) -> ShowTask:
        """The reporter of long tasks."""
        ...

    def begin(self, epochs: int, steps: int, epoch: int) -> None:
        """Report that training starts, or resumes, at an epoch."""
        ...

    def step(self, epoch: int, step: int) -> None:
        """Report a finished step."""
        ...

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Report a finished epoch."""
        ...

    def suggestion(self, suggestion: Suggestion) -> None:
        """Report the chosen number of clusters."""
        ...

    def note(self, text: str) -> None:
        """Report a note."""
        ...

    def warn(self, text: str) -> None:
        """Report a warning."""
        ...


class Silent:
    """A progress reporter that reports warnings only, if a function for them is given."""

    def __init__(self, warn: Callable[[str], object] = lambda text: None, show_task: ShowTask = show_nothing) -> None:
        self._warn, self.show_task = warn, show_task

    def begin(self, epochs: int, steps: int, epoch: int) -> None:
        """Ignore it."""

    def step(self, epoch: int, step: int) -> None:
        """Ignore it."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Ignore it."""

    def suggestion(self, suggestion: Suggestion) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def warn(self, text: str) -> None:
        """Pass the warning on."""
        self._warn(text)
