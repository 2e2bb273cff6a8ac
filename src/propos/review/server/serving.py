"""The server's life: a port, a token, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from propos.common.errors import InputError
from propos.review.server.app import application
from propos.runs import Run

HOST = "127.0.0.1"
MOST_PORTS = 100  # that are tried after the one that was asked for
GRACE = 2  # seconds that a request under way has when the server ends

Stop = Callable[[], None]


def serve(run: Run, port: int, ready: Callable[[str, Stop], None]) -> int:
    """Serve a run's page until `ready`'s second argument is called; its first is the address, once it answers.

    Returns how many edits could not be saved.
    """
    listening = free_socket(port)
    number = int(listening.getsockname()[1])
    token, unsaved = secrets.token_urlsafe(24), set[str]()
    settings = uvicorn.Config(
        application(run, token, number, unsaved),
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(settings, lambda stop: ready(f"http://{HOST}:{number}/{token}/", stop))
    asyncio.run(server.serve([listening]))
    return len(unsaved)


def free_socket(port: int) -> socket.socket:
    """Return a socket on the first port from this one on that nobody uses; 0 is any."""
    for number in range(port, min(port + MOST_PORTS, 65_535) + 1):
        # By its protocol asyncio knows to send at once: else an answer waits 40 ms for its head to be acknowledged.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if (
            os.name == "posix"
        ):  # a port whose connections have just ended is free; elsewhere this would share one in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, number))
            listening.listen()
        except OSError:
            listening.close()
        else:
            return listening
    raise InputError(f"--port {port}: it and the {MOST_PORTS} after it are in use: give another")


class _Server(uvicorn.Server):
    """Signals are the command's own matter; it is told when the server answers and how to stop it."""

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
