"""A file of edits that a person brings, taken into the log of a run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, shown
from propos.runs.edit_log import read_bounded, torn_note
from propos.runs.edits import Edit, Split, parse_edits
from propos.runs.reader import Run


@dataclass(frozen=True)
class Applied:
    """What came of a file: edits taken in, those that were there already, and what a person should know."""

    fresh: list[Edit]  # as they are in the run
    known: int
    given: dict[int, int]  # the id in the file of each cluster that was split off, by its id in the run
    notes: list[str]


def apply_file(run: Run, path: Path) -> Applied:
    """Take in the edits of a file: all that are new, or none and a reason."""
    if not path.exists():
        raise InputError(f"{path}: no such file; give one that was downloaded from a run's page")
    where = str(path)
    numbered, torn = parse_edits(read_bounded(path), where)
    edits = [edit for _, edit in numbered]
    if not edits:
        raise InputError(f"{path}: holds no edits")
    refuse_other_images(set(run.table.images), edits, where, str(run.path))
    fresh = run.edits.append(numbered, where)
    named = {edit.id: edit.into for edit in edits if isinstance(edit, Split)}
    given = {edit.into: named[edit.id] for edit in fresh if isinstance(edit, Split)}
    return Applied(fresh, len(edits) - len(fresh), given, [torn_note(path, torn)] if torn else [])


def refuse_other_images(images: Collection[str], edits: list[Edit], where: str, run: str) -> None:
    """Refuse edits that speak of images, and of none that the run has: they are another run's."""
    named = [name for edit in edits for name in getattr(edit, "images", None) or ()]
    if named and not any(name in images for name in named):
        raise InputError(
            f"{where}: {run} has none of its images, the first {shown(named[0])}: give the run it was made for"
        )
