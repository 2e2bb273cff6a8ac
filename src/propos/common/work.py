"""Long pieces of work, and who shows how far they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Progress = Callable[[int, int], object]  # how much is done, and of how much; 0 where that is not known yet


class Working(Protocol):
    """Shows a piece of work by its words; gives what to call with how far it is."""

    def __call__(self, words: str) -> AbstractContextManager[Progress]:
        """Begin the piece of work."""
        ...


def unnoticed(done: int, total: int) -> None:
    """Tell nobody."""


def unseen(words: str) -> AbstractContextManager[Progress]:
    """Show nothing of a piece of work."""
    return nullcontext(unnoticed)
