"""Studio's routes: its page, the state that windows poll, and the actions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Literal, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ValidationError

from propos.review.report import page_file
from propos.review.server.app import NOT_HERE, answering_errors, read_body, sandboxed
from propos.review.studio.requests import Dropped, Export, Folder, Learn, Named, NewRun, Predict
from propos.review.studio.studio import Studio
from propos.review.studio.work import Work

MOST_BODY = 64_000  # bytes of a request
Asked = TypeVar("Asked", bound=BaseModel)


def studio_application(studio: Studio) -> FastAPI:
    """Return Studio's application, without the guard and the runs' pages."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    _page_routes(app)
    _reading_routes(app, studio)
    _action_routes(app, studio)

    @app.exception_handler(ValidationError)
    async def misunderstood(_: Request, error: Exception) -> Response:
        return PlainTextResponse("the request is not understood\n", 422)

    return answering_errors(app)


def _page_routes(app: FastAPI) -> None:
    @app.get("/")
    def page() -> Response:
        return _page("studio.html", "text/html")

    @app.get("/studio.js")
    def script() -> Response:
        return _page("studio.js", "text/javascript")

    @app.get("/studio.css")
    def style() -> Response:
        return _page("studio.css", "text/css")


def _reading_routes(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/state")
    def state(known: str = "") -> Response:
        content = json.dumps(studio.state()).encode()
        version = hashlib.sha256(content).hexdigest()[:16]
        if version == known:
            return Response(status_code=204)
        return Response(content, media_type="application/json", headers={"X-Version": version})

    @app.get("/api/folder")
    def folder(path: str | None = None) -> Response:
        return JSONResponse(studio.places.look(path or None))

    @app.get("/api/picture")
    def picture(path: str) -> Response:
        found = studio.places.picture(path)
        return NOT_HERE if found is None else sandboxed(*found)

    @app.get("/api/preview")
    def preview(name: str) -> Response:
        return JSONResponse(studio.preview(name))

    @app.get("/api/drawn/{kind}")
    def drawn(kind: Literal["clusters", "map"], name: str) -> Response:
        path = studio.picture(name, kind)
        return NOT_HERE if path is None else sandboxed(path, "image/png")

    @app.get("/api/summary/{identity}")
    def summary(identity: str) -> Response:
        return JSONResponse(studio.summary(identity))

    @app.get("/api/result/{identity}")
    def result(identity: str) -> Response:
        path = studio.result(identity)
        return FileResponse(path, media_type="application/octet-stream", filename=f"labels{path.suffix}")


def _action_routes(app: FastAPI, studio: Studio) -> None:
    def action(path: str, model: type[Asked], act: Callable[[Asked], object]) -> None:
        """Add a route whose body is checked by a model; the answer is what the action returns."""

        async def route(request: Request) -> Response:
            asked = model.model_validate_json(await read_body(request, MOST_BODY))
            return JSONResponse(await run_in_threadpool(act, asked))

        app.post(path)(route)

    action("/api/inspect", Folder, studio.inspect)
    action("/api/find", Dropped, lambda asked: {"path": studio.places.find(asked.name, asked.files)})
    action("/api/start", NewRun, lambda asked: _added(studio.start(asked)))
    action("/api/learn", Learn, lambda asked: _added(studio.learn(asked)))
    action("/api/plan", Export, studio.plan_export)
    action("/api/export", Export, lambda asked: _added(studio.export(asked)))
    action("/api/predict", Predict, lambda asked: _added(studio.predict(asked)))
    action("/api/pause", Named, lambda asked: studio.pause(asked.name))
    action("/api/resume", Named, lambda asked: studio.resume(asked.name))
    action("/api/delete", Named, lambda asked: studio.delete(asked.name))
    action("/api/restore", Named, lambda asked: {"run": studio.trash.restore(asked.name)})


def _added(work: Work) -> dict[str, str]:
    return {"id": work.id, "run": work.run}


def _page(name: str, kind: str) -> Response:
    return Response(page_file(name), media_type=kind)
