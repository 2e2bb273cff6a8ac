"""The folders and files of a reproduction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from propos.study.reproduce.budgets import Task


@dataclass(frozen=True)
class ReproducePaths:
    """The folder of a reproduction, and that of the published sets it reads."""

    out: Path
    root: Path | None = None

    @property
    def images(self) -> Path:
        """The folder of reduced sets."""
        return self.out / "images"

    def run(self, task: Task) -> Path:
        """Return the run folder of a cell."""
        return self.out / "cells" / task.key

    def measurement(self, task: Task, name: str) -> Path:
        """Return the file of a measurement on a finished cell."""
        return self.out / "readings" / task.key / f"{name}.json"
