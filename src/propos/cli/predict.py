"""`propos predict`: assign new images to a run's clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say
from propos.common.errors import refuse_to_overwrite


def predict(
    run: Annotated[Path, FINISHED_RUN],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="New images, as for `propos run`, or one image.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Output table (.csv, .parquet or .json); must not exist."),
    ],
    data: Annotated[
        Path | None, typer.Option(help="Folder of data sets (default: the run's, else PROPOS_DATA).")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Assign new images to the clusters of a finished run."""
    refuse_to_overwrite(output)
    from propos.common.plurals import counted
    from propos.runs import Run, check_table_path, write_parts

    check_table_path(output)
    folder = Run.open(run)

    from propos.cli.display import Terminal
    from propos.runner import open_like
    from propos.training import Model, choose_device

    model = Model.from_run(folder, choose_device(device))
    # Images that are read once are not cached.
    with open_like(model.config, source, data, keep="use") as images, Terminal(quiet) as terminal:
        for note in (*folder.notes_on_edits(), *images.notes):
            terminal.warn(note)
        with terminal.show_task("Predicting") as progress:
            rows = write_parts(model.tabulate(images, progress), output)
        for skipped in images.skipped:
            say(f"skipped {skipped.path}: {skipped.reason}", err=True)
        terminal.note(f"{counted(rows, 'image')}: {output}")
