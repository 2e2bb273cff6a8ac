"""`propos apply`: apply corrections to a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from propos.runs import Run
    from propos.runs.edit_file import Applied

MOST_TOLD = 20  # clusters that are new


def apply(
    run: Annotated[Path, FINISHED_RUN],
    file: Annotated[Path, typer.Argument(metavar="EDITS", help="A file of edits, downloaded from a run's page.")],
) -> None:
    """Apply corrections to a run: names, merges, splits, moves, junk and confirmations."""
    from propos.common.plurals import counted
    from propos.review.report import PAGE, show_edits
    from propos.runs import Run, apply_file

    folder = Run.open(run)
    applied = apply_file(folder, file)
    for note in (*applied.notes, *folder.notes_on_edits()):
        say(f"warning: {note}", err=True)
    were = "was" if applied.known == 1 else "were"
    again = f" ({applied.known:,} {were} already applied)" if applied.known else ""
    shown = show_edits(folder)
    seen = (
        f"On the page: open {(run / PAGE).absolute()}" if shown else f"See them: propos report {shlex.quote(str(run))}"
    )
    say(f"{counted(len(applied.fresh), 'edit')} applied{again}. {seen}")
    for line in _new_clusters(folder, applied):
        say(line)


def _new_clusters(run: Run, applied: Applied) -> Iterator[str]:
    """Report new clusters, and their ids in the file if those differ."""
    from propos.common.plurals import counted

    names, sizes = run.corrected.names(), {each.id: len(each.members) for each in run.corrected.clusters}
    new = [id_ for id_ in applied.given if id_ in sizes]  # not those that were undone or merged
    for id_ in new[:MOST_TOLD]:
        called = "" if names[id_] is None else f" ({names[id_]})"
        given = applied.given[id_]
        why = "" if given == id_ else f"; the file calls it {given}, which is now the id of another cluster"
        yield f"Cluster {id_}{called} is new, with {counted(sizes[id_], 'image')}{why}."
    if len(new) > MOST_TOLD:
        yield f"And {counted(len(new) - MOST_TOLD, 'more cluster')}."
