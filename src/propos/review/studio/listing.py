"""The runs of a folder as the first page lists them."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from propos.common.errors import InputError
from propos.data import escape_name, unescape_name
from propos.review.report.files import FOLDER, is_current
from propos.review.studio.queue import Queue
from propos.review.studio.work import Work
from propos.runs import FolderLocked, Run, read_progress, refuse_if_locked
from propos.runs.table_reader import check_table

MOST_RUNS = 500
PATIENCE = 20  # times as long as counting took, until reviewed images are counted again
SHEETS = ("sheet-0000.jpg", "sheet-0000.png")
STATES = {"interrupted": "paused", "failed": "failed", "running": "failed"}
WRITING = {"doing": "Writing the page"}  # after the last line of a run's progress
CRASHED = "it ended without a message: resume it"


class Listing:
    """Describes runs; what takes long is computed again only when a run changed."""

    def __init__(self, runs: Path, queue: Queue) -> None:
        self.runs, self.queue = runs, queue
        self._facts: dict[str, tuple[object, dict[str, Any]]] = {}
        self._reviewed: dict[str, _Counted] = {}

    def folder(self, name: str) -> Path:
        """Return the folder of a run by its name; raise InputError if there is none."""
        plain = unescape_name(name)
        path = self.runs / plain
        if not plain or plain.startswith(".") or "/" in plain or "\0" in plain or len(plain) > 255:
            raise InputError("no such run")
        if path.is_symlink() or not path.is_dir():
            raise InputError(f"{name}: no such run: it was renamed, or moved to the trash")
        return path

    def all(self) -> list[dict[str, Any]]:
        """Describe all runs, the newest first."""
        paths = [path for path in self.runs.iterdir() if not path.name.startswith(".") and not path.is_symlink()]
        found = (self.describe(escape_name(path.name)) for path in paths if path.is_dir())
        listed = [each for each in found if each is not None]
        listed.sort(key=lambda each: (each["started"], each["name"]), reverse=True)
        return listed[:MOST_RUNS]

    def describe(self, name: str) -> dict[str, Any] | None:
        """Describe a run; None for a folder that is none."""
        path, work = self.runs / unescape_name(name), self.queue.of_run(name)
        if not (path / "run.json").is_file():
            return None if work is None else {**self._fresh(name, work), **self._state(work, path, "failed")}
        facts = self._read(name, path)
        return {**facts, **self._state(work, path, facts["state"])}

    def _fresh(self, name: str, work: Work) -> dict[str, Any]:
        """Describe a run that has not begun to train."""
        started = datetime.fromtimestamp(work.added, UTC).isoformat(timespec="seconds")
        title = Path(unescape_name(work.source or "")).name
        return {"name": name, "title": escape_name(title), "images": None, "clusters": work.clusters,
                "started": started, "source": work.source, "earlier": work.earlier}  # fmt: skip

    def _state(self, work: Work | None, path: Path, written: str) -> dict[str, Any]:
        if work is not None and work.state in ("waiting", "working", "stopping"):
            progress = read_progress(path) or (WRITING if written == "finished" else None)
            return {"state": work.state, "work": work.id, "progress": progress, "message": ""}
        message = "" if work is None else work.message
        if written == "running":
            with suppress(OSError):
                try:
                    refuse_if_locked(path)
                except FolderLocked as error:
                    return {"state": "elsewhere", "message": str(error), "progress": read_progress(path)}
            message = message or CRASHED
        state = STATES.get(written, written)
        if work is not None and written != "finished" and work.state in ("failed", "paused"):
            state = work.state
        return {"state": state, "message": message, **({} if work is None else {"work": work.id})}

    def _read(self, name: str, path: Path) -> dict[str, Any]:
        stamps = [_stamp(path / each) for each in ("run.json", "config.yaml", "report/data.js")]
        known = self._facts.get(name)
        if known is None or known[0] != stamps:
            known = self._facts[name] = (stamps, _facts(name, path))
        facts = known[1]
        return {**facts, "reviewed": self._count(name, path)} if facts["state"] == "finished" else facts

    def _count(self, name: str, path: Path) -> int:
        """Count the reviewed images of a run."""
        stamp = _stamp(path / "edits.jsonl")
        if stamp is None:
            return 0
        known, now = self._reviewed.get(name), time.monotonic()
        if known is not None and (known.stamp == stamp or now < known.until):
            return known.count
        count = known.count if known is not None else 0
        with suppress(InputError, OSError):
            corrected = Run.open(path).corrected
            count = int((corrected.confirmed | corrected.junk).sum())
        took = time.monotonic() - now
        self._reviewed[name] = _Counted(stamp, count, now + took + PATIENCE * took)
        return count


@dataclass(frozen=True)
class _Counted:
    stamp: object
    count: int
    until: float  # not counted again before


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _facts(name: str, path: Path) -> dict[str, Any]:
    """Read what a run folder says of itself."""
    fresh = {"name": name, "title": name, "images": None, "clusters": None, "started": "", "earlier": None}
    try:
        run = Run.open(path)
        info, page = run.info, run.finished and is_current(run)
        return {
            **fresh,
            "title": info.source.name or name,
            "images": check_table(path / "clusters.parquet") if run.finished else info.source.images,
            "clusters": None if run.config.clusters is None else str(run.config.clusters),
            "started": info.started or "",
            "source": None if run.config.source is None else escape_name(str(run.config.source)),
            "state": info.status,
            "earlier": _earlier(path, info.earlier),
            "page": page,
            "picture": next((each for each in SHEETS if page and (path / FOLDER / each).is_file()), None),
        }
    except (InputError, OSError) as error:
        return {**fresh, "state": "damaged", "message": str(error)}


def _earlier(path: Path, earlier: str | None) -> str | None:
    """Return the name of the run that a run continues, if it lies next to it."""
    if earlier is None:
        return None
    found = Path(earlier)
    return escape_name(found.name) if found.absolute().parent == path.absolute().parent else None
