"""The scripts with a run's edits for its page; they are separate, so that the page is not written again for an edit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from propos.review.report.files import EDITS, FOLDER, is_current
from propos.runs import Run, as_lines, read_proposals, wait_for_lock, write_atomically
from propos.runs.audit import read_drawn

LOCK = ".page.lock"
Drawn = Sequence[tuple[int, int]]  # images of an audit, and the cluster of each when it was drawn
PART = 16_000_000  # bytes of a log in one script; earlier lines never change, so their scripts are written once


def edits_scripts(lines: bytes, proposals: bytes = b"", audit: Drawn = ()) -> dict[str, tuple[bytes, ...]]:
    """Return the scripts with a log, proposals and drawn images by file name; the last one names the others.

    Each is in parts, because a log may have many megabytes.
    """
    *earlier, last = _parts(lines)
    files = {f"edits-{number:04d}.js": _assigned(b"PART", part) for number, part in enumerate(earlier, start=1)}
    script = _assigned(b"EDITS", last)
    if files:
        script += (b"window.PROPOS_EARLIER_EDITS=", json.dumps([*files]).encode(), b";\n")
    if audit:
        script += (b"window.PROPOS_AUDIT=", json.dumps(audit).encode(), b";\n")
    return {**files, EDITS: (script + _assigned(b"PROPOSALS", proposals)) if proposals else script}


def _parts(lines: bytes) -> list[bytes]:
    """Return a log in parts of whole lines; a log that grows keeps all parts but the last."""
    parts, start = [], 0
    while len(lines) - start > PART:
        end = max(lines.rfind(b"\n", start, start + PART), lines.find(b"\n", start)) + 1
        if end == 0 or end == len(lines):
            break
        parts.append(lines[start:end])
        start = end
    return [*parts, lines[start:]]


def _assigned(name: bytes, lines: bytes) -> tuple[bytes, ...]:
    """Return the parts of a script that assigns lines to a global.

    Backticks and dollar signs would end or fill the raw template; they occur only in JSON strings, where they are
    escaped.
    """
    return b"window.PROPOS_" + name + b"=String.raw`", _escaped(lines), b"`;\n"


def _escaped(lines: bytes) -> bytes:
    return lines.replace(b"`", b"\\u0060").replace(b"$", b"\\u0024")


def proposal_lines(run: Run) -> bytes:
    """Return the proposals of a run for its page."""
    return as_lines(read_proposals(run.path))


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
            lines, proposals, audit = run.edits.text(), proposal_lines(run), read_drawn(run)
        with suppress(FileNotFoundError):  # `propos report` is replacing the page and will include them
            for name, script in edits_scripts(lines, proposals, audit).items():
                _write_if_new(run.path / FOLDER / name, script)
    return True


def _write_if_new(path: Path, script: tuple[bytes, ...]) -> None:
    """Write a script unless the file holds it already."""
    same = path.exists() and path.stat().st_size == sum(map(len, script))
    if not same or path.read_bytes() != b"".join(script):
        write_atomically(path, lambda file: file.writelines(script))
