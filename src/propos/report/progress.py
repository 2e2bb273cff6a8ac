"""How the report says how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Progress = Callable[[int, int], object]


class Working(Protocol):
    """Shows a piece of work by its words; gives what to call with how much is done, and of how much."""

    def __call__(self, words: str) -> AbstractContextManager[Progress]:
        """Begin the piece of work."""
        ...


class Silent:
    """Shows nothing."""

    @contextmanager
    def __call__(self, words: str) -> Iterator[Progress]:
        """Begin the piece of work."""
        yield lambda done, total: None
