"""`propos open`: look at a run in the browser and correct it."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli import interrupts
from propos.cli.early import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 8765


def open_run(
    run: Annotated[Path, FINISHED_RUN],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where to listen; a busy port is passed over.")] = PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Open a run's page in the browser, where corrections are saved as they are made; Ctrl-C ends it."""
    from propos.cli.display import Terminal
    from propos.report import PAGE, is_current, show_edits, write_report
    from propos.runs import Run
    from propos.server import serve
    from propos.words import counted

    with Terminal(False) as terminal:
        folder = Run.open(run)
        for note in folder.notes_on_edits():
            terminal.warn(note)
        if not is_current(folder):
            write_report(folder, working=terminal.working, warn=terminal.warn)
        else:
            show_edits(folder)

    def ready(address: str, stop: Callable[[], None]) -> None:
        interrupts.hear(lambda number, frame: stop())
        say(f"{run} is open at {address} (Ctrl-C ends)")
        if not no_browser:
            webbrowser.open(address)

    serve(folder, port, ready)
    show_edits(folder)
    edits = len(folder.edits.edits)
    saved = f"{folder.edits.path} holds {counted(edits, 'edit')}, seen in {run / PAGE}"
    say(f"Closed; {saved}" if edits else "Closed; nothing was corrected")
