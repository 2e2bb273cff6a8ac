"""The log of a run's edits on the disk, read and appended to by several processes at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from propos.errors import InputError
from propos.runs.atomic import sync_folder
from propos.runs.edits import MOST_BYTES, Edit, Known, Numbered, as_line, parse_edits, uncollected
from propos.runs.lock import waited_for

LOG, LOCK = "edits.jsonl", ".edits.lock"


class EditLog:
    """All edits of a run so far, each checked; empty where nobody corrected anything."""

    def __init__(self, folder: Path, ids: Iterable[int]) -> None:
        self.path = folder / LOG
        self.edits: list[Edit] = []
        self._torn = b""
        self._known = Known(ids)
        self._bytes = self._lines = 0  # that were read
        self.catch_up()

    @property
    def note(self) -> str | None:
        """What a person should know of how it was read."""
        return torn_note(self.path, self._torn) if self._torn else None

    def catch_up(self) -> None:
        """Read what was appended since it was last read."""
        if not self.path.exists():
            return
        content = read_bounded(self.path, self._bytes)
        with uncollected():
            numbered, self._torn = parse_edits(content, str(self.path), self._lines)
            self.edits += self._known.take_in(numbered, str(self.path))
        self._bytes += len(content) - len(self._torn)
        self._lines += content.count(b"\n")

    def append(self, edits: Iterable[Numbered], where: str) -> list[Edit]:
        """Check edits against all that are there, write those that are new, and return them as they were written.

        What was split off under an id that another cluster got since has a free one here (`Known.take_in`).
        Either all are taken in or none. They are on the disk when this returns.
        """
        with waited_for(self.path.with_name(LOCK)):
            self.catch_up()
            fresh = self._known.take_in(edits, where, others=True)
            if fresh:
                try:
                    self._write(b"".join(as_line(edit) for edit in fresh), where)
                except BaseException:
                    self._known.forget(fresh)
                    raise
                self.edits += fresh
        return fresh

    def text(self) -> bytes:
        """Return the lines of all edits that were read, as they are on the disk."""
        if not self._bytes:
            return b""
        with self.path.open("rb") as file:
            return file.read(self._bytes)

    def _write(self, lines: bytes, where: str) -> None:
        if self._bytes + len(lines) > MOST_BYTES:
            raise InputError(f"{where}: {self.path} would be larger than {MOST_BYTES:,} bytes with it")
        new = not self.path.exists()
        with self.path.open("ab") as file:
            file.truncate(self._bytes)  # what a torn write left would become part of the next line
            try:
                if self._bytes and self._last_byte() != b"\n":
                    lines = b"\n" + lines
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(self._bytes)
                raise
        if new:
            sync_folder(self.path.parent)
        self._torn = b""
        self._bytes += len(lines)
        self._lines += lines.count(b"\n")

    def _last_byte(self) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self._bytes - 1)
            return file.read(1)


def torn_note(path: Path, torn: bytes) -> str:
    """Say that a file ends in what a torn write left."""
    return f"{path}: its last line is cut short and is left out ({len(torn):,} bytes of an edit never confirmed)"


def read_bounded(path: Path, start: int = 0) -> bytes:
    """Read a file of edits from a byte on, or say why it cannot be read."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: cannot be read: it is no file")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: cannot be read: it is larger than {MOST_BYTES:,} bytes")
        with path.open("rb") as file:
            file.seek(start)
            return file.read(MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
