"""The script with a run's edits for its page; it is separate, so that the page is not written again for an edit."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress

from propos.review.report.files import EDITS, FOLDER, is_current
from propos.runs import Run, wait_for_lock, write_atomically

LOCK = ".page.lock"


def edits_script(lines: bytes) -> tuple[bytes, bytes, bytes]:
    """Yield the script with the lines of a log, in parts, because a log may have many megabytes.

    Backticks and dollar signs would end or fill the raw template; they occur only in JSON strings, where they are
    escaped.
    """
    escaped = lines.replace(b"`", b"\\u0060").replace(b"$", b"\\u0024")
    return b"window.PROPOS_EDITS=String.raw`", escaped, b"`;\n"


def show_edits(run: Run, alone: AbstractContextManager[object] | None = None) -> bool:
    """Update a run's page with all edits; return whether there is a page that can show them.

    `alone` keeps other threads from reading the log meanwhile.
    """
    if not is_current(run):
        return False
    # One process at a time, so that an older log never replaces a newer one.
    with wait_for_lock(run.path / LOCK):
        with alone or nullcontext():
            run.edits.catch_up()
            lines = run.edits.text()
        with suppress(FileNotFoundError):  # `propos report` is replacing the page and will include them
            write_atomically(run.path / FOLDER / EDITS, lambda file: file.writelines(edits_script(lines)))
    return True
