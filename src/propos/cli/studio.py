"""`propos studio`: the whole way in the browser."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from propos.cli import interrupts
from propos.cli.streams import say

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 8765
PORT_OPTION = typer.Option(min=0, max=65_535, help="Port to listen on; if it is busy, the next free one.")
NO_BROWSER = typer.Option("--no-browser", help="Print the address; open no browser.")


def studio(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders that it may read and write (default: your home folder)."),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs"),
    port: Annotated[int, PORT_OPTION] = PORT,
    no_browser: Annotated[bool, NO_BROWSER] = False,
) -> None:
    """Cluster, review and export in the browser; runs continue after it stops. Stop with Ctrl-C."""
    open_studio(folders or [_home()], runs, port, no_browser)


def open_studio(folders: list[Path], runs: Path, port: int, no_browser: bool) -> None:
    """Serve Studio, open it in the browser, and say what continues when it ends."""
    from propos.review.studio import serve_studio

    def ready(address: str, stop: Callable[[], None]) -> None:
        interrupts.set_handler(lambda number, frame: stop())
        say(f"propos studio is open at {address} (stop with Ctrl-C){_from_elsewhere(address)}")
        if not no_browser and has_screen():
            webbrowser.open(address)

    computing = serve_studio(runs.absolute(), folders, port, ready)
    on = f"; {', '.join(computing)} continues: propos studio shows it again" if computing else ""
    say(f"Closed{on}")


def has_screen() -> bool:
    """Return whether a browser can be shown here."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _from_elsewhere(address: str) -> str:
    """Return the command that makes the address work on another machine, where this one has no screen."""
    port = urlsplit(address).port
    return "" if has_screen() else f"; on your own machine first: ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}"


def _home() -> Path:
    from propos.data.files.home import home

    return home() or Path.cwd()
