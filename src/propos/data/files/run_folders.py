"""Folders that we wrote ourselves, whose pictures are of images and none of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

RUN, SETTINGS = "run.json", "config.yaml"
MOST = 1 << 20  # bytes of a run.json, which has about a thousand


def is_run_folder(folder: str | Path) -> bool:
    """Return whether a folder is a run folder."""
    path = Path(folder) / RUN
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return describes_run(file.read(MOST), os.path.lexists(Path(folder) / SETTINGS))
    except OSError:
        return False


def describes_run(content: bytes, settings_beside: bool) -> bool:
    """Return whether this is the run.json of a propos run; a damaged one counts if a run's settings are next to it."""
    try:
        info = json.loads(content)
    except (ValueError, RecursionError):
        return settings_beside
    return isinstance(info, dict) and "schema" in info and "propos" in info
