"""`propos ask`: list the images whose labels would help most."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.rows import check_rows_path, write_rows
from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.evaluation.questions import Questions
    from propos.runs import Run

COLUMNS = ("group", "image", "cluster", "name", "alternative", "alternative_name")
Row = tuple[int, str, int, str | None, int, str | None]


def ask(
    run: Annotated[Path, FINISHED_RUN],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Number of images.")] = 100,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write them to this .csv or .json file.")
    ] = None,
) -> None:
    """List the images whose labels would help most, grouped by the two clusters they lie between."""
    from propos.common.errors import InputError
    from propos.common.plurals import counted
    from propos.review.report import choose_images_to_check
    from propos.runs import Run

    if output is not None:
        check_rows_path(output)
    folder = Run.open(run)
    folder.refuse_all_junk()
    for note in folder.notes_on_edits():
        say(f"warning: {note}", err=True)
    questions = choose_images_to_check(folder, count)
    if questions is None:
        raise InputError(f"{run}: has only one cluster left: there is nothing to ask")
    rows = _rows(folder, questions)
    _print(rows)
    if rows:
        say(f"Answer them on the page, under Questions: propos open {shlex.quote(str(run))}")
    if output is not None:
        write_rows(COLUMNS, rows, output)
        say(f"{counted(len(rows), 'image')}: {output}")


def _rows(run: Run, questions: Questions) -> list[Row]:
    names, images = run.corrected.names(), run.table.images
    columns = (
        questions.rows.tolist(),
        questions.group.tolist(),
        questions.cluster.tolist(),
        questions.alternative.tolist(),
    )
    return [
        (group + 1, images[row], own, names[own], other, names[other])
        for row, group, own, other in zip(*columns, strict=True)
    ]


def _print(rows: list[Row]) -> None:
    """Print each group: the two clusters it lies between, then its images by their present cluster."""
    from propos.common.plurals import counted

    before = 0
    for group, image, cluster, name, other, other_name in rows:
        if group != before:
            size = sum(row[0] == group for row in rows)
            low, high = sorted([(cluster, name), (other, other_name)], key=lambda each: each[0])
            say(f"{group}. {_title(*low)} or {_title(*high)}? ({counted(size, 'image')})")
            before = group
        say(f"   {_title(cluster, name)}: {image}")
    if not rows:
        say("Every image has an answer already.")


def _title(cluster: int, name: str | None) -> str:
    return f"cluster {cluster}" if name is None else f"{name} ({cluster})"
