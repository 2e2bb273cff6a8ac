"""`propos report`: write a run's page again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN


def report(
    run: Annotated[Path, FINISHED_RUN],
    against: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Compare with another finished run of the same images: which images moved."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Write the HTML page of a run."""
    from propos.cli.display import Terminal
    from propos.review.report import write_report
    from propos.runs import Run

    with Terminal(quiet) as terminal:
        folder = Run.open(run)
        for note in folder.notes_on_edits():
            terminal.warn(note)
        other = None if against is None else Run.open(against)
        page = write_report(folder, show_task=terminal.show_task, warn=terminal.warn, other=other)
        terminal.line(f"View the report: open {shlex.quote(str(page.absolute()))}")
