"""The files a person names: a folder, a list of paths, a text file or CSV of them, a zip, one image."""

from __future__ import annotations

import contextlib
import datetime
import errno
import heapq
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from propos.common.errors import InputError
from propos.common.names import no_such_source
from propos.common.progress import Progress, ignore_progress
from propos.common.spreadsheets import Text, read_text
from propos.data.files.content import LARGEST_MEMBER, is_archive
from propos.data.files.entry import Entry, Scan, Skipped, reason_for
from propos.data.files.names import escape_name
from propos.data.files.run_folders import MOST, RUN, SETTINGS, describes_run, is_run_folder
from propos.data.files.virtual_fs import virtual_devices

DROPPINGS = frozenset(
    {"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx", "@eadir", "$recycle.bin"}
    | {"system volume information", "lost+found"}
)
BROKEN_LINK = "a link to nothing"
ENCRYPTED = "encrypted"
NO_SUCH_FILE = "no such file"
NOT_A_FILE = "not an ordinary file"
OUTSIDE = "its path leads out of the archive"
TWICE = "named twice"
LARGE_MEMBER = "larger than 1 GiB, in an archive"


@dataclass(frozen=True)
class Listing:
    """Paths relative to a root, in order, each with its label if known."""

    root: Path
    rows: Sequence[tuple[str, str | None]]


def list_files(what: str | Path | Sequence[str | Path] | Listing, progress: Progress = ignore_progress) -> Scan:
    """List every file that might be an image, before any is opened.

    Folders and archives are listed in the order of their names, lists in their own. Hidden files, what systems leave
    behind or make up and our own run folders are passed over, except where a list names them.
    """
    if isinstance(what, Listing):
        return _listed(what.root, what.rows)
    if not isinstance(what, str | Path):
        paths = [Path(path).absolute() for path in what]
        if not paths:
            raise InputError("the list of images is empty: give at least one path")
        root = Path(os.path.commonpath([path.parent for path in paths]))
        return _listed(root, [(str(path), None) for path in paths])
    path = Path(what)
    if path.is_dir():
        if is_run_folder(path):
            raise InputError(f"{escape_name(str(what))}: is a run folder, not a folder of images; give its images")
        if path.stat().st_dev in virtual_devices():
            raise InputError(
                f"{escape_name(str(what))}: holds what the system makes up, no files; give a folder of images"
            )
        return _walk(path, progress)
    if not path.exists():
        raise no_such_source(escape_name(str(what)))
    if not path.is_file():
        raise InputError(f"{escape_name(str(what))}: is neither a file nor a folder; give a folder of images")
    if path.suffix.lower() == ".txt":
        text = read_text(path)
        lines = (line.rstrip("\r") for line in text.text.split("\n"))
        return _noted(text, [(line, None) for line in lines if line.strip()])
    if path.suffix.lower() == ".csv":
        text = read_text(path)
        return _noted(text, _rows(text))
    if zipfile.is_zipfile(path):
        return _archived(path)
    if path.suffix.lower() == ".zip":
        with path.open("rb") as file:
            if is_archive(path.name, file.read(2)):
                raise InputError(f"{escape_name(str(path))}: the archive is damaged or cut short; get it again")
    return _listed(path.parent, [(path.name, None)])


def is_ignored(name: str) -> bool:
    """Return whether a file or folder of this name is hidden or belongs to the system."""
    return name.startswith(".") or name.lower() in DROPPINGS


def _walk(root: Path, progress: Progress) -> Scan:
    """Walk a folder: first what is really in it, then what its links lead to; each folder once, each file once.

    A link is kept for later and followed under its own name, unless it leads to what is already listed; so a loop
    ends, and an image that is also linked to keeps its real name. Hard links are files like any other.
    """
    walk = _Walk(progress)
    walk.enter("", root)
    while walk.links:
        walk.follow(*heapq.heappop(walk.links))
    return Scan(root, sorted(walk.images, key=_by_name), sorted(walk.skipped, key=lambda skipped: skipped.path))


class _Walk:
    """The files and skipped entries that a walk has found."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.made_up = virtual_devices()
        self.images: list[Entry] = []
        self.skipped: list[Skipped] = []
        self.links: list[tuple[str, str]] = []  # a heap of names and paths
        self.folders: set[tuple[int, int]] = set()
        self.files: set[tuple[int, int]] = set()
        self.followed: set[tuple[int, int]] = set()

    def enter(self, name: str, path: str | Path) -> None:
        """List a folder and all real folders below it."""
        pending = [(name, os.fspath(path))]
        while pending:
            name, folder = pending.pop()
            try:
                identity = _identity(Path(folder).stat())
                seen = identity in self.folders or identity[0] in self.made_up or is_run_folder(folder)
                children = [] if seen else list(os.scandir(folder))
            except OSError as error:
                if not name:
                    raise InputError(f"{escape_name(folder)}: cannot be read: {reason_for(error)}") from None
                self.skip(name, reason_for(error))
                continue
            self.folders.add(identity)
            self.progress(len(self.images), 0)
            for child in children:
                child_name = f"{name}/{child.name}" if name else child.name
                if is_ignored(child.name):
                    continue
                if child.is_symlink():
                    heapq.heappush(self.links, (child_name, child.path))
                elif child.is_dir(follow_symlinks=False):
                    pending.append((child_name, child.path))
                else:
                    self.take(child_name, child.path, os.lstat(child.path))

    def take(self, name: str, path: str, status: os.stat_result) -> None:
        """List a real file, unless a link has already led to it."""
        if not stat.S_ISREG(status.st_mode):
            self.skip(name, NOT_A_FILE)
        elif _identity(status) not in self.followed:
            self.files.add(_identity(status))
            self.images.append(_entry(name, Path(path), status))

    def follow(self, name: str, path: str) -> None:
        """Follow a link to a folder or file not seen before."""
        try:
            status = Path(path).stat()
        except OSError as error:
            self.skip(name, BROKEN_LINK if error.errno in (errno.ENOENT, errno.ELOOP) else reason_for(error))
            return
        if stat.S_ISDIR(status.st_mode):
            self.enter(name, path)
        elif _identity(status) not in self.files:
            self.take(name, path, status)
            self.followed.add(_identity(status))

    def skip(self, name: str, reason: str) -> None:
        """Note a file that is not used."""
        self.skipped.append(Skipped(escape_name(name), reason))


def _listed(root: Path, rows: Iterable[tuple[str, str | None]]) -> Scan:
    """List the files a list names, in its order; relative paths start from the root."""
    images: list[Entry] = []
    skipped: list[Skipped] = []
    seen: set[Path] = set()
    base = root.absolute()
    for written, label in rows:
        path = base / written
        name = str(path.relative_to(base) if path.is_relative_to(base) and ".." not in path.parts else path)
        try:
            status = path.stat()
        except (OSError, ValueError) as error:
            missing = isinstance(error, ValueError) or error.errno == errno.ENOENT
            skipped.append(Skipped(escape_name(name), NO_SUCH_FILE if missing else reason_for(error)))
            continue
        if path in seen:
            skipped.append(Skipped(escape_name(name), TWICE))
        elif not stat.S_ISREG(status.st_mode):
            skipped.append(Skipped(escape_name(name), NOT_A_FILE))
        else:
            images.append(_entry(name, path, status, label))
        seen.add(path)
    return Scan(root, images, skipped)


def _archived(path: Path) -> Scan:
    """List the members of a zip archive; nothing is ever extracted to the disk."""
    images: dict[str, Entry] = {}
    skipped: list[Skipped] = []
    try:
        with zipfile.ZipFile(path) as archive:
            members = _without_runs(archive)
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{escape_name(str(path))}: cannot be read as a zip archive: {error}") from None
    for member in members:
        parts = re.split(r"[/\\]", member.filename)
        if member.is_dir() or any(is_ignored(part) for part in parts if part not in ("", ".", "..")):
            continue
        if ".." in parts or parts[0] == "" or parts[0].endswith(":"):
            skipped.append(Skipped(escape_name(member.filename), OUTSIDE))
        elif member.flag_bits & 1:
            skipped.append(Skipped(escape_name(member.filename), ENCRYPTED))
        elif member.file_size > LARGEST_MEMBER:
            skipped.append(Skipped(escape_name(member.filename), LARGE_MEMBER))
        else:  # of two members of one name the later one counts, as in unpacking
            images[member.filename] = _member(path, member)
    return Scan(path, sorted(images.values(), key=_by_name), sorted(skipped, key=lambda skipped: skipped.path))


def _without_runs(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """List the members that are in no run folder."""
    members, names = archive.infolist(), set(archive.namelist())
    told = (member for member in members if member.filename.rpartition("/")[2] == RUN)
    runs = {member.filename.removesuffix(RUN) for member in told if _is_archived_run(archive, member, names)}
    if not runs:
        return members
    return [member for member in members if runs.isdisjoint(_folders_above(member.filename))]


def _is_archived_run(archive: zipfile.ZipFile, member: zipfile.ZipInfo, names: set[str]) -> bool:
    try:
        with archive.open(member) as file:
            return describes_run(file.read(MOST), member.filename.removesuffix(RUN) + SETTINGS in names)
    except (zipfile.BadZipFile, OSError, RuntimeError, EOFError, zlib.error):  # damaged, or encrypted
        return False


def _folders_above(name: str) -> list[str]:
    """Return the folders a member is in, each with the slash it ends in, the archive itself as nothing."""
    return ["", *(name[: match.end()] for match in re.finditer("/", name))]


def _member(path: Path, member: zipfile.ZipInfo) -> Entry:
    time = datetime.datetime(1980, 1, 1, tzinfo=datetime.UTC)
    with contextlib.suppress(ValueError):  # archives may hold dates that do not exist
        time = datetime.datetime(*member.date_time, tzinfo=datetime.UTC)
    name = escape_name(member.filename)
    return Entry(
        name=name,
        path=path,
        size=member.file_size,
        mtime_ns=int(time.timestamp()) * 1_000_000_000,
        member=member.filename,
        digest=f"crc32 {member.CRC:08x}",
    )


def _entry(name: str, path: Path, status: os.stat_result, label: str | None = None) -> Entry:
    name = escape_name(name.replace(os.sep, "/"))
    return Entry(name, path, status.st_size, status.st_mtime_ns, label=label)


def _noted(text: Text, rows: Iterable[tuple[str, str | None]]) -> Scan:
    """List the files a text names; where its letters are a guess, a name may also be its very bytes."""
    root = text.path.parent
    if text.note is None:
        return _listed(root, rows)
    bytewise = ((text.as_written(path), path, label) for path, label in rows)
    found = _listed(
        root, [(exact if os.path.lexists(root / exact) else path, label) for exact, path, label in bytewise]
    )
    return replace(found, notes=[text.note])


def _rows(text: Text) -> list[tuple[str, str | None]]:
    """Read the paths, and labels if there are any, from a CSV."""
    table = text.table()
    column = next((name for name in ("image", "path") if name in table.columns), None)
    if column is None:
        present = ", ".join(table.columns) or "none"
        raise InputError(
            f"{escape_name(str(text.path))}: found columns {present}: needs image (or path), and label if known"
        )
    return [(row[column], row.get("label") or None) for _, row in table.rows if row[column]]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _by_name(entry: Entry) -> str:
    return entry.name
