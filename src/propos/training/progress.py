"""What the loop tells whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from propos.clustering import Suggestion
from propos.common.work import Working, unseen


class Progress(Protocol):
    """A watcher of a run; the command line draws bars, the estimator stays silent."""

    @property
    def working(self) -> Working:
        """What shows a long piece of work."""
        ...

    def begin(self, epochs: int, steps: int, epoch: int) -> None:
        """Training begins, or goes on, at an epoch."""
        ...

    def step(self, epoch: int, step: int) -> None:
        """A step is done."""
        ...

    def epoch(self, record: Mapping[str, Any]) -> None:
        """An epoch is done."""
        ...

    def suggestion(self, suggestion: Suggestion) -> None:
        """A number of clusters was chosen."""
        ...

    def note(self, text: str) -> None:
        """Something a person would want to know."""
        ...

    def warn(self, text: str) -> None:
        """Something a person should act on."""
        ...


class Silent:
    """A watcher that keeps quiet, but for warnings where it is told how."""

    def __init__(self, warn: Callable[[str], object] = lambda text: None, working: Working = unseen) -> None:
        self._warn, self.working = warn, working

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
        """Pass it on."""
        self._warn(text)
