"""The server's routes: the page's files, originals by row, and the log of edits."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, PlainTextResponse

from propos.common.errors import InputError, describe_os_error
from propos.review.quality import audit_state
from propos.review.report import edits_scripts, page_file, proposal_lines, questions, report_file, show_edits
from propos.review.server.originals import Originals
from propos.review.server.similar import find_similar, find_text
from propos.runs import Edit, LogChanged, Run, as_line, parse_edit, parse_edits, refuse_other_images
from propos.runs.audit import read_drawn

EDIT_FILES = re.compile(r"edits(-[0-9]{4,9})?\.js")
SOON = 0.5  # seconds after an edit until the page's file is updated
MOST_BODY = 16_000_000  # bytes per request
NOT_HERE = PlainTextResponse("not found\n", 404)


def application(
    run: Run, unsaved: set[str], studio: str | None = None, by_text: Callable[[str, int], list[int]] | None = None
) -> FastAPI:
    """Return the application for a run, without the guard.

    `unsaved` collects the ids of edits that could not be saved; the page keeps them and sends them again. `studio` is
    the address of the page with all runs, if there is one. `by_text` finds images by a text, if the network reads.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    originals, writing = Originals(run), threading.Lock()
    names = frozenset(run.table.images)
    shown = _Shown(run, writing)

    def read(since: int, last: str) -> Response:
        with writing:
            run.edits.restore()
            return _log(run.edits.edits, since, last)

    def write(lines: bytes, since: int, last: str) -> Response:
        with writing:
            numbered, torn = parse_edits(lines, "edits")
            if torn:
                parse_edit(torn, "edits: the last line")
            refuse_other_images(names, [edit for _, edit in numbered], "edits", str(run.path))
            ids = {edit.id for _, edit in numbered}
            try:
                fresh = run.edits.append(numbered, "edits")
            except (OSError, LogChanged):
                unsaved.update(ids)
                raise
            unsaved.difference_update(ids)
            if fresh:
                shown.soon()
            return _log(run.edits.edits, since, last)

    @app.get("/")
    def page() -> Response:
        told = f'data-server="{html.escape(str(run.path))}"'
        told += "" if studio is None else f' data-studio="{html.escape(studio)}"'
        told += "" if by_text is None else " data-reads"
        text = page_file("index.html").decode().replace('<html lang="en"', f'<html lang="en" {told}')
        return Response(text, media_type="text/html")

    @app.get("/app.js")
    def script() -> Response:
        return Response(page_file("app.js"), media_type="text/javascript")

    @app.get("/app.css")
    def style() -> Response:
        return Response(page_file("app.css"), media_type="text/css")

    def log(name: str) -> Response:
        with writing:
            with suppress(LogChanged):  # the page receives edits when it saves
                run.edits.restore()
            lines = run.edits.text()
        parts = edits_scripts(lines, proposal_lines(run), read_drawn(run)).get(name)
        return NOT_HERE if parts is None else Response(b"".join(parts), media_type="text/javascript")

    @app.get("/original/{row}")
    def original(row: int) -> Response:
        found = originals.file(row)
        return NOT_HERE if found is None else sandboxed(*found)

    @app.get("/api/edits")
    def edits(since: int = 0, last: str = "") -> Response:
        return read(since, last)

    @app.post("/api/edits")
    async def save(request: Request, since: int = 0, last: str = "") -> Response:
        return await run_in_threadpool(write, await read_body(request, MOST_BODY), since, last)

    @app.get("/api/questions")
    def ask() -> list[tuple[int, int]]:
        with writing, suppress(LogChanged):
            run.edits.restore()  # corrections that another program saved
        return questions(run)

    def audit(count: int) -> dict[str, Any]:
        with writing, suppress(LogChanged):
            run.edits.restore()
        return audit_state(run, count)

    @app.get("/api/audit")
    def audited() -> dict[str, Any]:
        return audit(0)

    @app.post("/api/audit")
    def draw(count: int) -> dict[str, Any]:
        return audit(min(count, len(names)))

    @app.post("/api/similar")
    async def similar(request: Request) -> dict[str, Any]:
        return await run_in_threadpool(find_similar, run, await read_body(request, MOST_BODY))

    @app.post("/api/text")
    async def text(request: Request) -> dict[str, Any]:
        return await run_in_threadpool(find_text, by_text, await read_body(request, MOST_BODY))

    @app.get("/{name}")
    def report(name: str) -> Response:
        if EDIT_FILES.fullmatch(name) is not None:
            return log(name)
        path = report_file(run, name)
        return NOT_HERE if path is None else FileResponse(path)

    @app.exception_handler(LogChanged)
    async def changed(_: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{error}\n", 503)  # a page keeps its edits and sends them again

    return answering_errors(app)


def answering_errors(app: FastAPI) -> FastAPI:
    """Answer errors of people and of the operating system in one line."""

    @app.exception_handler(InputError)
    async def refused(_: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{error}\n", 413 if isinstance(error, RequestTooLarge) else 422)

    @app.exception_handler(OSError)
    async def failed(_: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        return PlainTextResponse(f"{describe_os_error(error)}\n", 500)

    return app


class _Shown:
    """Updates the page's file with saved edits, several at once while they arrive fast."""

    def __init__(self, run: Run, writing: threading.Lock) -> None:
        self.run, self.writing = run, writing
        self.due = threading.Event()

    def soon(self) -> None:
        if self.due.is_set():
            return
        self.due.set()
        timer = threading.Timer(SOON, self._now)
        timer.daemon = True
        timer.start()

    def _now(self) -> None:
        self.due.clear()
        with suppress(
            OSError, InputError
        ):  # the edits are saved; the command reports the problem when the server stops
            show_edits(self.run, self.writing)


class RequestTooLarge(InputError):  # noqa: N818 - the name says what happened
    """A request is too large."""


async def read_body(request: Request, most: int) -> bytes:
    """Read a request's body up to a limit in bytes."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise RequestTooLarge(f"a request is limited to {most:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _log(edits: list[Edit], since: int, last: str) -> Response:
    """Return the edits after those that the page knows; all of them if it knows another log."""
    known = 0 < since <= len(edits) and edits[since - 1].id == last
    start = since if known else 0
    lines = b",".join(as_line(edit) for edit in edits[start:])
    content = f'{{"since": {start}, "version": {len(edits)}, "edits": ['.encode() + lines + b"]}"
    return Response(content, media_type="application/json")


def sandboxed(path: Path, kind: str) -> Response:
    """Return a file of the person's, which a browser may show and nothing else."""
    return FileResponse(path, media_type=kind, headers={"Content-Security-Policy": "default-src 'none'; sandbox"})
