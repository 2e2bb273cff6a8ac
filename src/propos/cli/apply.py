"""`propos apply`: take a person's corrections into a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from propos.cli.early import FINISHED_RUN
from propos.cli.streams import say


def apply(
    run: Annotated[Path, FINISHED_RUN],
    file: Annotated[Path, typer.Argument(help="A file of edits, as a run's page downloads it.")],
) -> None:
    """Take corrections into a run: names, merges, splits, moves, junk and confirmations."""
    from propos.runs import Run, apply_file

    folder = Run.open(run)
    applied = apply_file(folder, file)
    for note in (*applied.notes, *folder.notes_on_edits()):
        say(f"warning: {note}", err=True)
    again = f" ({applied.known:,} were there already)" if applied.known else ""
    say(f"{applied.fresh:,} edits taken in{again}. See them: propos report {shlex.quote(str(run))}")
