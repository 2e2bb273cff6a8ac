"""Starting and stopping the server: port, token, and a clean shutdown."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from propos.common.errors import InputError
from propos.review.server.app import application
from propos.review.server.arriving import Arriving
from propos.review.server.guard import Guard
from propos.runs import Run

HOST = "127.0.0.1"
MOST_PORTS = 100  # tried after the requested one
GRACE = 2  # seconds for open requests when the server stops

Stop = Callable[[], None]


def serve(
    run: Run,
    port: int,
    ready: Callable[[str, Stop], None],
    by_text: Callable[[str, int], list[int]] | None = None,
    arriving: Arriving | None = None,
) -> int:
    """Serve a run's page; call `ready` with the address and a function that stops the server, once it is up.

    `by_text` finds images by a text; the page of images `arriving` meanwhile is served below the run's. Return the
    number of edits that could not be saved.
    """
    unsaved = set[str]()
    app = application(run, unsaved, by_text=by_text)
    serve_application(app if arriving is None else arriving.over(app, unsaved), port, ready)
    return len(unsaved)


def serve_application(app: ASGIApp, port: int, ready: Callable[[str, Stop], None]) -> None:
    """Serve an application below a random path on the loopback, until it is stopped."""
    listening = free_socket(port)
    number = int(listening.getsockname()[1])
    token = secrets.token_urlsafe(24)
    settings = uvicorn.Config(
        Guard(app, token, number),
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(settings, lambda stop: ready(f"http://{HOST}:{number}/{token}/", stop))
    asyncio.run(server.serve([listening]))


def free_socket(port: int) -> socket.socket:
    """Return a socket on the first free port from this one on; 0: any."""
    for number in range(port, min(port + MOST_PORTS, 65_535) + 1):
        # With the protocol set, asyncio disables Nagle's algorithm, which would delay responses by 40 ms.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if (
            os.name == "posix"
        ):  # a port whose connections have just closed is free; on Windows this would share a port in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, number))
            listening.listen()
        except OSError:
            listening.close()
        else:
            return listening
    raise InputError(f"--port {port}: this port and the next {MOST_PORTS} are in use: choose another")


class _Server(uvicorn.Server):
    """A server that leaves signals to the command, and reports when it is up."""

    def __init__(self, config: uvicorn.Config, started: Callable[[Stop], None]) -> None:
        super().__init__(config)
        self._announce = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce(self._stop)

    def _stop(self) -> None:
        self.should_exit = True
