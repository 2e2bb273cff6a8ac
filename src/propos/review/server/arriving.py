"""The page of the images that a run takes in while it is open."""

from __future__ import annotations

import threading
from pathlib import Path

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from propos.review.report import is_current, write_report
from propos.review.server.app import NOT_HERE, application
from propos.runs import Run
from propos.runs.arrivals import FOLDER

PREFIX = f"/{FOLDER}/"


class Arriving:
    """The images that a run takes in while its page is served: their page is below /arrivals/.

    It is written when it is loaded after images came: images do not move while a person looks at them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writing = threading.Lock()  # of the folder's tables and page
        self._shown: FastAPI | None = None

    def over(self, app: ASGIApp, unsaved: set[str]) -> ASGIApp:
        """Return an application that answers requests below /arrivals/, and passes all others on."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            root = scope["root_path"]
            inside = scope["path"].removeprefix(root)
            if not inside.startswith(PREFIX):
                await app(scope, receive, send)
                return
            found = await run_in_threadpool(self._application, unsaved, inside == PREFIX)
            await (found or NOT_HERE)({**scope, "root_path": f"{root}{PREFIX.rstrip('/')}"}, receive, send)

        return answer

    def _application(self, unsaved: set[str], loaded: bool) -> FastAPI | None:
        """Return the application of the images as they were when the page was loaded; None if there are none."""
        if not loaded and self._shown is not None:
            return self._shown
        with self.writing:
            if not (self.folder / "run.json").exists():
                return None
            run = Run.open(self.folder)
            if not is_current(run):
                write_report(run)
                self._shown = None
            if self._shown is None:
                self._shown = application(run, unsaved)
            return self._shown
