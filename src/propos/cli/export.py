"""`propos export`: export a run's corrected labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.review.export import Split
    from propos.runs import Run

MOST_NAMED = 5  # clusters that a warning names
FIFTYONE = "FiftyOneImageClassificationDataset"


def export(
    run: Annotated[Path, FINISHED_RUN],
    to: Annotated[
        Literal["csv", "parquet", "json", "coco", "embedding-atlas", "folders", "fiftyone", "xmp", "model", "onnx"],
        typer.Option(help="Output format."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Output path; must not exist.")],
    how: Annotated[
        Literal["symlink", "hardlink", "copy"], typer.Option(help="How images are put into folders; originals stay.")
    ] = "symlink",
    split: Annotated[
        str | None,
        typer.Option(
            metavar="80/10/10",
            help="Split into train, val and test, as folders or a column; duplicates and bursts stay in one part.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print which file would go where; write nothing.")] = False,
) -> None:
    """Export the corrected labels of a run for other programs."""
    from propos.common.plurals import counted
    from propos.review.export import check_output_path, check_split, export_run, refuse_dry_run
    from propos.review.promise import promise_of
    from propos.runs import Run

    shares = check_split(split, to)
    folder = Run.open(run)
    if to in ("model", "onnx"):
        folder.refuse_all_junk()
    for note in folder.notes_on_edits():
        say(f"warning: {note}", err=True)
    refuse_dry_run(dry_run, to)
    check_output_path(folder, output)  # before what takes long: a network that is traced, a search for duplicates
    if to == "onnx":
        _export_onnx(folder, output)
        return
    parts = None if shares is None else _split(folder, shares)
    exported = export_run(folder, to, output, how, dry_run, parts)
    for original, place in exported.planned:
        say(f"{original} -> {place}")
    what = counted(exported.count, "cluster" if to == "model" else "image")
    say(f"{what}{' would go to' if dry_run else ':'} {output}")
    promise = promise_of(folder)
    if not dry_run and (promise.quality is not None or to in ("csv", "parquet", "json")):
        say(f"Labels: {promise}")
    if parts is not None:
        say(parts.summary())
    if exported.left_out:
        are = "is junk and is" if exported.left_out == 1 else "are junk and are"
        say(f"{counted(exported.left_out, 'image')} {are} left out")
    if to == "fiftyone":
        # By default fiftyone looks for a folder of images.
        where = f'dataset_dir={str(output)!r}, data_path="data.json"'
        say(f"Load it: fiftyone.Dataset.from_dir({where}, dataset_type=fiftyone.types.{FIFTYONE})")
    if to == "xmp":
        say("Copy its contents next to the images; photo programs read IMAGE.xmp with IMAGE")


def _split(run: Run, shares: list[int]) -> Split:
    """Split a run's images, and warn of clusters that not every part has."""
    from propos.cli.display import Terminal
    from propos.review.export import absent_clusters, split_run

    with Terminal(quiet=False) as terminal:
        split = split_run(run, shares, terminal.show_task)
        absent = absent_clusters(run, split)
        if absent:
            first = ", ".join(absent[:MOST_NAMED]) + (", …" if len(absent) > MOST_NAMED else "")
            terminal.warn(f"too few different images for every part of the split: {first}")
    return split


def _export_onnx(run: Run, output: Path) -> None:
    from propos.common.plurals import counted
    from propos.review.export.onnx import write_onnx

    checked = write_onnx(run, output)
    of = "of the run's images" if checked.own else "images of noise, because the run's cannot be read"
    clusters = counted(len(run.corrected.prototypes.ids), "cluster")
    say(f"{clusters} of images of {checked.size}×{checked.size}: {output}")
    say(f"onnxruntime agrees with torch within {checked.difference:.1e} on {checked.images:,} {of}")
