"""`propos export`: a run's corrected labels for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from propos.cli.streams import say


def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    to: Annotated[
        Literal["csv", "parquet", "json", "coco", "embedding-atlas", "folders", "fiftyone", "model"],
        typer.Option(help="The form to write."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file or folder to write, which is not there yet.")
    ],
    how: Annotated[
        Literal["symlink", "hardlink", "copy"], typer.Option(help="How images come into folders; originals stay.")
    ] = "symlink",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which file would go where.")] = False,
) -> None:
    """Write the labels of a run, as corrected, in a form that other programs read."""
    from propos.export import export_run
    from propos.runs import Run

    folder = Run.open(run)
    for note in folder.notes_on_edits():
        say(f"warning: {note}", err=True)
    exported = export_run(folder, to, output, how, dry_run)
    for original, place in exported.planned:
        say(f"{original} -> {place}")
    what = "clusters" if to == "model" else "images"
    say(f"{exported.count:,} {what}{' would go to' if dry_run else ':'} {output}")
