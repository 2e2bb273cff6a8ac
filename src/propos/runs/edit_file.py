"""Applying a file of edits to a run: they are appended to its log."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, shown
from propos.runs.edit_log import incomplete_line_note, read_bounded
from propos.runs.edits import Edit, Split, parse_edits
from propos.runs.reader import Run


@dataclass(frozen=True)
class Applied:
    """The result of applying a file: the edits added, the number already known, and warnings."""

    fresh: list[Edit]  # as they are in the run
    known: int
    given: dict[int, int]  # the id in the file of each cluster that was split off, by its id in the run
    notes: list[str]


def apply_file(run: Run, path: Path) -> Applied:
    """Append the new edits of a file to a run's log; raise InputError, and append none, if one is refused."""
    if not path.exists():
        raise InputError(f"{path}: no such file: give one that was downloaded from a run's page")
    where = str(path)
    numbered, torn = parse_edits(read_bounded(path), where)
    edits = [edit for _, edit in numbered]
    if not edits:
        raise InputError(f"{path}: contains no edits")
    refuse_other_images(set(run.table.images), edits, where, str(run.path))
    fresh = run.edits.append(numbered, where)
    named = {edit.id: edit.into for edit in edits if isinstance(edit, Split)}
    given = {edit.into: named[edit.id] for edit in fresh if isinstance(edit, Split)}
    return Applied(fresh, len(edits) - len(fresh), given, [incomplete_line_note(path, torn)] if torn else [])


def refuse_other_images(images: Collection[str], edits: list[Edit], where: str, run: str) -> None:
    """Raise InputError if edits name images but none of the run's: they belong to another run."""
    named = [name for edit in edits for name in getattr(edit, "images", None) or ()]
    if named and not any(name in images for name in named):
        raise InputError(
            f"{where}: {run} contains none of its images, such as {shown(named[0])}: give the run that it was made for"
        )
