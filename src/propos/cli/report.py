"""`propos report`: write a run's page again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Write the page that shows what a run found."""
    from propos.cli.display import Terminal
    from propos.report import write_report
    from propos.runs import Run

    with Terminal(quiet) as terminal:
        folder = Run.open(run)
        for note in folder.notes_on_edits():
            terminal.warn(note)
        page = write_report(folder, working=terminal.working, warn=terminal.warn)
        terminal.note(f"See what was found: open {page.absolute()}")
