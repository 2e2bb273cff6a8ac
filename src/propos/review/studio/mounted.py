"""The pages of runs, each served as `propos open` serves it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from propos.common.errors import InputError
from propos.review.report.files import is_current
from propos.review.server.app import NOT_HERE, application
from propos.review.studio.listing import Listing
from propos.runs import Run

PREFIX = "/run/"
MOST_OPEN = 8  # runs that are kept open
STUDIO = "../../"  # its address from a run's page


class Mounted:
    """Passes requests below /run/NAME/ on to that run's application, and all others to Studio's."""

    def __init__(self, studio: ASGIApp, listing: Listing) -> None:
        self.studio, self.listing = studio, listing
        self.unsaved: set[str] = set()
        self._open: OrderedDict[str, tuple[object, FastAPI]] = OrderedDict()
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the guard has admitted."""
        root = scope["root_path"]
        inside = scope["path"].removeprefix(root)
        if not inside.startswith(PREFIX):
            await self.studio(scope, receive, send)
            return
        name, slash, _ = inside.removeprefix(PREFIX).partition("/")
        app = await run_in_threadpool(self._application, name) if slash else None
        if app is None:
            await NOT_HERE(scope, receive, send)
        else:
            await app({**scope, "root_path": f"{root}{PREFIX}{name}"}, receive, send)

    def _application(self, name: str) -> FastAPI | None:
        """Return the application of a finished run with a page; None for anything else."""
        with self._lock:
            try:
                path = self.listing.folder(name)
                stamp = _identity(path)
                known = self._open.get(name)
                if known is None or known[0] != stamp:
                    run = Run.open(path)
                    if not run.finished or not is_current(run):
                        return None
                    known = self._open[name] = stamp, application(run, self.unsaved, STUDIO)
            except (InputError, OSError):
                return None
            self._open.move_to_end(name)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return known[1]


def _identity(path: Path) -> object:
    found = (path / "run.json").stat()
    return found.st_ino, found.st_mtime_ns
