"""`propos audit`: draw images to check, and state how many labels are right."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

FIRST = 100  # images drawn unless a number is given


def audit(
    run: Annotated[Path, FINISHED_RUN],
    count: Annotated[
        int | None,
        typer.Option(
            "-n", "--count", min=1, help="Number of images to draw in all (default: 100, or as many as were drawn)."
        ),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Read answers from the table that -o wrote.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the images to check to this .csv; must not exist.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Draw again, from the clusters as they are now.")] = False,
) -> None:
    """Estimate how many labels are right, from randomly drawn images that you check."""
    from propos.common.errors import InputError, refuse_to_overwrite
    from propos.review.audit_table import read_answers, write_questions
    from propos.review.quality import describe_quality, measure_quality
    from propos.review.report import show_edits
    from propos.runs import Run
    from propos.runs.audit import UNANSWERED, draw_images, read_audit

    if output is not None and output.suffix != ".csv":
        raise InputError(f"{output}: name the file *.csv")
    if output is not None:
        refuse_to_overwrite(output)
    folder = Run.open(run)
    for note in folder.notes_on_edits():
        say(f"warning: {note}", err=True)
    drawn = None if new else read_audit(folder)
    if drawn is None or (count is not None and count > len(drawn.rows)):
        drawn = draw_images(folder, count or FIRST, new)
    if answers is not None:
        folder.edits.append(read_answers(folder, drawn, answers), str(answers))
    show_edits(folder)
    left = int((drawn.answers(folder) == UNANSWERED).sum())
    for line in describe_quality(folder, measure_quality(folder, drawn)):
        say(line)
    if output is not None:
        write_questions(folder, drawn, output)
        say(f"{left:,} to check: {output}; fill in its column right with y or n, then: {_again(run, output)}")
    elif left:
        say(f"{left:,} of {len(drawn.rows):,} drawn images to check: propos open {shlex.quote(str(run))}, under Audit")


def _again(run: Path, table: Path) -> str:
    return f"propos audit {shlex.quote(str(run))} --answers {shlex.quote(str(table))}"
