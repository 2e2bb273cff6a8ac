"""The server's routes: the page's files, originals by row, and the log of edits."""

from __future__ import annotations

import hmac
import html
import threading
from contextlib import suppress
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from propos.common.errors import InputError, describe_os_error
from propos.review.report import edits_script, page_file, questions, report_file, show_edits
from propos.review.server.originals import Originals
from propos.runs import Edit, LogChanged, Run, as_line, parse_edits, refuse_other_images

SOON = 0.5  # seconds after an edit until the page's file is updated
MOST_BODY = 16_000_000  # bytes per request
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NOT_HERE = PlainTextResponse("not found\n", 404)


def application(run: Run, token: str, port: int, unsaved: set[str]) -> ASGIApp:
    """Return the application for a run; requests without the token are refused.

    `unsaved` collects the ids of edits that could not be saved; the page keeps them and sends them again.
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
                raise InputError("edits: the last line cannot be read: not an edit in JSON")
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
        text, path = page_file("index.html").decode(), html.escape(str(run.path))
        return Response(
            text.replace('<html lang="en"', f'<html lang="en" data-server="{path}"'), media_type="text/html"
        )

    @app.get("/app.js")
    def script() -> Response:
        return Response(page_file("app.js"), media_type="text/javascript")

    @app.get("/app.css")
    def style() -> Response:
        return Response(page_file("app.css"), media_type="text/css")

    @app.get("/edits.js")
    def log() -> Response:
        with writing:
            with suppress(LogChanged):  # the page receives edits when it saves
                run.edits.restore()
            lines = run.edits.text()
        return Response(b"".join(edits_script(lines)), media_type="text/javascript")

    @app.get("/original/{row}")
    def original(row: int) -> Response:
        found = originals.file(row)
        return NOT_HERE if found is None else _sandboxed(*found)

    @app.get("/api/edits")
    def edits(since: int = 0, last: str = "") -> Response:
        return read(since, last)

    @app.post("/api/edits")
    async def save(request: Request, since: int = 0, last: str = "") -> Response:
        return await run_in_threadpool(write, await _body(request), since, last)

    @app.get("/api/questions")
    def ask() -> list[tuple[int, int]]:
        with writing, suppress(LogChanged):
            run.edits.restore()  # corrections that another program saved
        return questions(run)

    @app.get("/{name}")
    def report(name: str) -> Response:
        path = report_file(run, name)
        return NOT_HERE if path is None else FileResponse(path)

    @app.exception_handler(InputError)
    async def refused(_: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{error}\n", 413 if isinstance(error, RequestTooLarge) else 422)

    @app.exception_handler(LogChanged)
    async def changed(_: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{error}\n", 503)  # a page keeps its edits and sends them again

    @app.exception_handler(OSError)
    async def failed(_: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        return PlainTextResponse(f"{describe_os_error(error)}\n", 500)

    return Guard(app, token, port)


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


async def _body(request: Request) -> bytes:
    """Read a request's body up to the limit."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BODY:
            raise RequestTooLarge(f"edits: a request is limited to {MOST_BODY:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _log(edits: list[Edit], since: int, last: str) -> Response:
    """Return the edits after those that the page knows; all of them if it knows another log."""
    known = 0 < since <= len(edits) and edits[since - 1].id == last
    start = since if known else 0
    lines = b",".join(as_line(edit) for edit in edits[start:])
    content = f'{{"since": {start}, "version": {len(edits)}, "edits": ['.encode() + lines + b"]}"
    return Response(content, media_type="application/json")


def _sandboxed(path: Path, kind: str) -> Response:
    return FileResponse(path, media_type=kind, headers={"Content-Security-Policy": "default-src 'none'; sandbox"})


class Guard:
    """Middleware that admits only requests to this host, with the token, from its own page."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request before it is handled."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        first = scope["path"].removeprefix("/").partition("/")[0]
        reason = self._reason(headers, scope["method"], first)
        if reason is not None:
            await PlainTextResponse(f"{reason}\n", 403, headers=HEADERS)(scope, receive, send)
            return
        inner = {**scope, "root_path": f"/{first}"}  # the base of redirects

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in there)]
            await send(message)

        await self.app(inner, receive, guarded)

    def _reason(self, headers: dict[str, str], method: str, token: str) -> str | None:
        """Return why a request is refused; None: admitted."""
        host, origin = headers.get("host"), headers.get("origin")
        if host not in self.hosts:
            return "this server accepts requests to 127.0.0.1 only"
        if origin != f"http://{host}" and (origin is not None or method not in ("GET", "HEAD")):
            return "this server accepts requests from its own page only"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "this server accepts requests from its own page only"
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return "use the address that propos open printed: it contains a token"
        return None
