"""`propos name`: propose names for the clusters of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.review.naming import Named

UNSURE = "unsure"


def name(
    run: Annotated[Path, FINISHED_RUN],
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Words to choose from, one a line (runs that started from CLIP)."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets (default: PROPOS_DATA).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Propose names for the clusters of a run, with their evidence; the page and `propos proposals` accept them."""
    from propos.cli.display import Terminal
    from propos.review.naming import propose_names, read_words
    from propos.review.report import show_edits
    from propos.runner import open_run_images
    from propos.runs import Run

    words = None if vocabulary is None else read_words(vocabulary)
    folder = Run.open(run)
    with Terminal(quiet) as terminal, open_run_images(folder, data, terminal.show_task) as source:
        found = propose_names(folder, source, terminal.show_task, words)
    show_edits(folder)
    for each in found:
        say(_line(each))


def _line(found: Named) -> str:
    """Return a row of the table; a name that is not sure enough is not proposed."""
    return f"{found.cluster:<5} {found.name or UNSURE:24} {found.evidence}"
