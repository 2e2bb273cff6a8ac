"""`propos inspect` of a folder that a person has just chosen."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from propos.common.errors import InputError

PATIENCE = 600  # seconds
LAST_LINE = "propos: "
SHOWN = 200  # names of a list that are sent


class Inspector:
    """Looks at one folder at a time: another choice ends the look at the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def inspect(self, folder: Path, clusters: str | None) -> dict[str, Any]:
        """Return what `propos inspect` finds."""
        number = [] if clusters is None or ".." in clusters else ["-k", clusters]
        with self._lock:
            self.close()
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "propos", "inspect", str(folder), *number, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise InputError(f"{folder}: inspecting it took more than {PATIENCE // 60} minutes") from None
        if process.returncode != 0:
            said = [line.removeprefix(LAST_LINE) for line in err.splitlines() if line.startswith(LAST_LINE)]
            raise InputError(said[-1] if said else f"{folder}: no longer inspected: another folder was chosen")
        return _shortened(json.loads(out))

    def close(self) -> None:
        """End a look that is under way."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()


def _shortened(found: dict[str, Any]) -> dict[str, Any]:
    """Return the findings with at most some entries of each list, and the number of skipped files."""
    lists = ("duplicates", "tiny", "odd")
    return {
        **found,
        **{key: found[key][:SHOWN] for key in lists},
        "sizes": dict(list(found["sizes"].items())[:SHOWN]),
        "skipped": dict(list(found["skipped"].items())[:SHOWN]),
        "counts": {key: len(found[key]) for key in (*lists, "sizes", "skipped")},
    }
