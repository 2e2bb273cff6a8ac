"""`propos export`: a run's corrected labels for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.runs import Run


FIFTYONE = "FiftyOneImageClassificationDataset"


def export(
    run: Annotated[Path, FINISHED_RUN],
    to: Annotated[
        Literal["csv", "parquet", "json", "coco", "embedding-atlas", "folders", "fiftyone", "model", "onnx"],
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
    from propos.common.words import counted
    from propos.review.export import export_run, refuse_dry_run
    from propos.runs import Run

    folder = Run.open(run)
    if to in ("model", "onnx"):
        folder.refuse_all_junk()
    for note in folder.notes_on_edits():
        say(f"warning: {note}", err=True)
    if to == "onnx":
        refuse_dry_run(dry_run, to)
        _export_onnx(folder, output)
        return
    exported = export_run(folder, to, output, how, dry_run)
    for original, place in exported.planned:
        say(f"{original} -> {place}")
    what = counted(exported.count, "cluster" if to == "model" else "image")
    say(f"{what}{' would go to' if dry_run else ':'} {output}")
    if exported.left_out:
        are = "is junk and is" if exported.left_out == 1 else "are junk and are"
        say(f"{counted(exported.left_out, 'image')} {are} left out")
    if to == "fiftyone":
        # Left to itself, it looks for a folder of images.
        where = f'dataset_dir={str(output)!r}, data_path="data.json"'
        say(f"Load it: fiftyone.Dataset.from_dir({where}, dataset_type=fiftyone.types.{FIFTYONE})")


def _export_onnx(run: Run, output: Path) -> None:
    from propos.review.export import check_place

    check_place(run, output)
    from propos.common.words import counted
    from propos.review.export.onnx import write_onnx

    checked = write_onnx(run, output)
    of = "of the run's images" if checked.own else "images of noise, as the run's cannot be had"
    clusters = counted(len(run.corrected.prototypes.ids), "cluster")
    say(f"{clusters} of images of {checked.size}×{checked.size}: {output}")
    say(f"onnxruntime answers as torch does: within {checked.difference:.1e} on {checked.images:,} {of}")
