"""The trash: deleted runs, from where they can be restored. Nothing here deletes a run for good."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from propos.common.errors import InputError
from propos.data import escape_name, unescape_name

STAMP = "%Y%m%d-%H%M%S-%f"
ENTRY = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{6} (.+)", re.DOTALL)


class Trash:
    """A folder with deleted runs, named by the moment of deleting and the run's name."""

    def __init__(self, folder: Path, runs: Path) -> None:
        self.folder, self.runs = folder, runs

    def all(self) -> list[dict[str, str]]:
        """Return deleted runs, the latest first: their entry, and their name."""
        entries = sorted((path.name for path in self.folder.glob("*") if path.is_dir()), reverse=True)
        found = ((name, ENTRY.fullmatch(name)) for name in entries)
        return [{"entry": escape_name(name), "name": escape_name(match[1])} for name, match in found if match]

    def move_in(self, run: Path) -> None:
        """Move a run to the trash."""
        self.folder.mkdir(parents=True, exist_ok=True)
        run.rename(self.folder / f"{datetime.now().astimezone().strftime(STAMP)} {run.name}")

    def restore(self, entry: str) -> str:
        """Move a run back to where it was; return its name."""
        name = unescape_name(entry)
        match = ENTRY.fullmatch(name)
        path = self.folder / name
        if match is None or "/" in name or "\0" in name or not path.is_dir():
            raise InputError("no such run in the trash")
        if (self.runs / match[1]).exists():
            raise InputError(f"{escape_name(match[1])}: another run has this name now: rename one of them first")
        path.rename(self.runs / match[1])
        return escape_name(match[1])
