"""A run's edits on their way to its page: in a script of their own, so that the page need not be written again."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress

from propos.review.report.files import EDITS, FOLDER, is_current
from propos.runs import Run, waited_for, write_atomically

LOCK = ".page.lock"


def edits_script(lines: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the script that hands the lines of a log over, in parts: they may be many megabytes.

    Nothing in them ends or fills in a raw template: both letters stand inside strings, where JSON takes their escapes.
    """
    escaped = lines.replace(b"`", b"\\u0060").replace(b"$", b"\\u0024")
    return b"window.PROPOS_EDITS=String.raw`", escaped, b"`;\n"


def show_edits(run: Run, alone: AbstractContextManager[object] | None = None) -> bool:
    """Have the page that was written for a run show all edits by now; returns whether there is one that can.

    `alone` keeps others of this process from reading the log meanwhile.
    """
    if not is_current(run):
        return False
    # One at a time, so that no older log is written over a newer one.
    with waited_for(run.path / LOCK):
        with alone or nullcontext():
            run.edits.catch_up()
            lines = run.edits.text()
        with suppress(FileNotFoundError):  # `propos report` has just taken the old page away, and shows them itself
            write_atomically(run.path / FOLDER / EDITS, lambda file: file.writelines(edits_script(lines)))
    return True
