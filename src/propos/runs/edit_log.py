"""The log of a run's edits on disk, which several processes read and append to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from io import FileIO
from itertools import count
from pathlib import Path

from propos.common.errors import InputError
from propos.common.plurals import counted
from propos.runs.atomic import sync_folder, write_atomically
from propos.runs.edits import MOST_BYTES, Edit, Known, Numbered, as_line, garbage_collection_paused, parse_edits
from propos.runs.lock import wait_for_lock

LOG, LOCK, RUN = "edits.jsonl", ".edits.lock", "run.json"
MOST_TRIES = 10  # to append to a log that other programs change meanwhile
CHECKED = 4_096  # bytes before the appended lines that are compared after writing

Stamp = tuple[int, int, int, int]  # device, inode, size and time of the last change


class LogChanged(InputError):  # noqa: N818 - the name says what happened
    """The log or its run was replaced since it was read: nothing can be appended."""


class _Shorter(LogChanged):
    """The log is missing or was cut; its remaining lines are unchanged."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(f"{path}: lost edits after it was read: run the command again")
        self.size = size


class _Replaced(LogChanged):
    """The log was replaced by another one."""


class EditLog:
    """All edits of a run, each checked; empty if there are no corrections.

    Other programs may delete, cut or replace the file. Its text is therefore kept in memory and compared with the file:
    a log that is missing or cut is restored, any other change is refused and the file left untouched.
    """

    def __init__(self, folder: Path, ids: Iterable[int], tree: Iterable[int] = ()) -> None:
        self.path = folder / LOG
        self.edits: list[Edit] = []
        self.warn: Callable[[str], None] = lambda words: None
        self._known = Known(ids)
        self._known.add_tree(tree)
        self._text = bytearray()  # the lines of the edits, as the file holds them
        self._torn = b""
        self._stamp: Stamp | None = None  # the file's, when its content was exactly this; None: unknown
        self._kept: tuple[Path, int] | None = None  # a copy of the log that was replaced, and its size
        self._run = self._read_run()
        self.catch_up()

    @property
    def note(self) -> str | None:
        """A warning if the last line is incomplete, else None."""
        return incomplete_line_note(self.path, self._torn) if self._torn else None

    def add_tree(self, ids: Iterable[int]) -> None:
        """Let edits refer to the nodes of the run's tree, which was grown after the log was read."""
        self._known.add_tree(ids)

    def free_id(self) -> int:
        """Return an id that is above those of all clusters."""
        return self._known.free()

    def catch_up(self) -> None:
        """Read what was appended since it was last read; raise LogChanged where the file was changed otherwise."""
        self._refuse_if_gone()
        stamp = self._look()
        if stamp == self._stamp and (stamp is not None or not self._text):
            return
        content = b"" if stamp is None else read_bounded(self.path)
        known = len(self._text)
        if content[:known] != self._text:
            if self._text.startswith(content):
                raise _Shorter(self.path, len(content))
            raise _Replaced(f"{self.path}: was replaced after it was read: run the command again")
        with garbage_collection_paused():
            numbered, torn = parse_edits(content[known:], str(self.path), self._text.count(b"\n"))
            self.edits += self._known.add_new(numbered, str(self.path))
        self._text += content[known : len(content) - len(torn)]
        self._torn, self._stamp = torn, stamp

    def restore(self) -> None:
        """Read appended edits; restore the log if it is missing or cut, else raise LogChanged."""
        try:
            self.catch_up()
        except InputError:
            self.append((), "")

    def append(self, edits: Iterable[Numbered], where: str) -> list[Edit]:
        """Check edits against the log, append the new ones, and return them as written.

        A cluster that was split off under an id that is taken by now gets a free one (`Known.add_new`). Either all
        edits are appended or none, and they are on disk when this returns. Raises LogChanged if the log was replaced.
        """
        edits = list(edits)
        self._refuse_if_gone()
        with wait_for_lock(self.path.with_name(LOCK)):
            for _ in range(MOST_TRIES):
                if not self._catch_up_or_restore():
                    continue
                fresh = self._known.add_new(edits, where, others=True)
                try:
                    written = not fresh or self._write(b"".join(as_line(edit) for edit in fresh), where)
                except BaseException:
                    self._known.forget(fresh)
                    raise
                if written:
                    self.edits += fresh
                    return fresh
                self._known.forget(fresh)
        raise LogChanged(f"{self.path}: another program keeps changing it: stop that program, then save again")

    def text(self) -> bytes:
        """Return the lines of all edits that were read, as they are on the disk."""
        return bytes(self._text)

    def _catch_up_or_restore(self) -> bool:
        """Read what was appended, or append what the file has lost, and return whether it now holds all.

        Raises LogChanged where the file is another one.
        """
        try:
            self.catch_up()
        except _Shorter as shorter:
            self._torn = b""
            if not self._append(bytes(self._text[shorter.size :]), shorter.size):
                return False
            self.warn(f"{self.path}: was deleted or cut; restored with its {counted(len(self.edits), 'edit')}")
        except _Replaced:
            self._refuse_if_gone()  # with its run: its folder is another run's by now
            raise LogChanged(self._replaced()) from None
        except InputError as error:  # also what another program appended and cannot be read
            raise LogChanged(str(error)) from None
        return True

    def _replaced(self) -> str:
        """Save the edits of a replaced log to a separate file; return the message that names it and says what to do."""
        replaced, size = f"{self.path}: was replaced by another program", len(self._text)
        if self._kept is None or self._kept[1] != size or not self._kept[0].exists():
            names = (self.path.with_name(f"edits-kept-{number}.jsonl") for number in count(1))
            kept = next(path for path in names if not path.exists())
            write_atomically(kept, self.text())
            self._kept = kept, size
            self.warn(f"{replaced}; kept its {counted(len(self.edits), 'edit')} in {kept}")
        held = f"what it held ({counted(len(self.edits), 'edit')}) is in {self._kept[0]}"
        return f"{replaced}; {held}: rename that file to {LOG}, or open the run again"

    def _write(self, lines: bytes, where: str) -> bool:
        """Append lines to an up-to-date log; return whether the file then ends in them."""
        if self._text and self._text[-1:] != b"\n":
            lines = b"\n" + lines
        if len(self._text) + len(lines) > MOST_BYTES:
            raise InputError(f"{where}: {self.path} would be larger than {MOST_BYTES:,} bytes with it")
        written = self._append(lines, len(self._text))
        if written:
            self._text += lines
        return written

    def _append(self, content: bytes, start: int) -> bool:
        """Append to a file that holds the first bytes of what is known, and return whether it is the log still.

        What another program does at the same time is noticed before or after; then what was appended is removed again.
        """
        new = self._look() is None
        with self.path.open("a+b", buffering=0) as file:
            if _size(file) != start + len(self._torn):
                return False
            try:
                if self._torn:
                    file.truncate(start)  # what a torn write left would become part of the next line
                _write_all(content, file)
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(min(start, _size(file)))  # never longer: that would fill it with NUL bytes
                raise
            stamp = _stamp_of(os.fstat(file.fileno()))  # before the check, so that what changes since is noticed
            if not self._holds(content, start, file, stamp):
                _take_back(content, file)
                return False
        if new:
            sync_folder(self.path.parent)
        self._torn, self._stamp = b"", stamp
        return True

    def _holds(self, content: bytes, start: int, file: FileIO, stamp: Stamp) -> bool:
        """Return whether an open file with this stamp is still the run's log and ends in the appended lines."""
        before = self._text[max(0, start - CHECKED) : start]
        file.seek(start - len(before))
        there, now = file.read() == before + content, self._look()
        return there and now is not None and now[:2] == stamp[:2] and self._read_run() == self._run

    def _look(self) -> Stamp | None:
        try:
            return _stamp_of(self.path.stat())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _read_run(self) -> bytes | None:
        """Read what distinguishes the run from any other in the same folder."""
        try:
            return (self.path.parent / RUN).read_bytes()
        except OSError:
            return None

    def _refuse_if_gone(self) -> None:
        folder = self.path.parent
        if not folder.is_dir() or self._read_run() != self._run:
            saved = f", nor are its {counted(len(self.edits), 'edit')}" if self.edits else ""
            raise LogChanged(
                f"{folder}: the run that was opened is no longer here{saved}: it was renamed, deleted or replaced; "
                "put it back, or open it where it is now"
            )


def _stamp_of(stat: os.stat_result) -> Stamp:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _size(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_size


def _write_all(content: bytes, file: FileIO) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file.fileno(), rest) :]


def _take_back(lines: bytes, file: FileIO) -> None:
    """Remove lines from the end of a file, if it ends in them."""
    start = max(0, _size(file) - len(lines))
    file.seek(start)
    if file.read() == lines:
        file.truncate(start)


def incomplete_line_note(path: Path, torn: bytes) -> str:
    """Return the warning for a file whose last line is incomplete."""
    return f"{path}: ignoring its incomplete last line ({len(torn):,} bytes; this edit was never confirmed as saved)"


def read_bounded(path: Path) -> bytes:
    """Read a file of edits; raise InputError if it cannot be read."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: cannot be read: not a file")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: cannot be read: it is larger than {MOST_BYTES:,} bytes")
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
