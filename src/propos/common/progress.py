"""Progress of long tasks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Progress = Callable[[int, int], object]  # the amount done and the total; 0 if it is unknown


class ShowTask(Protocol):
    """A function that shows a task by name and yields a progress callback."""

    def __call__(self, name: str) -> AbstractContextManager[Progress]:
        """Start the task."""
        ...


def ignore_progress(done: int, total: int) -> None:
    """Ignore progress."""


def show_nothing(name: str) -> AbstractContextManager[Progress]:
    """Show nothing."""
    return nullcontext(ignore_progress)
