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
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Shaped

from propos.common.errors import InputError
from propos.common.names import no_such_source
from propos.common.progress import Progress, ignore_progress
from propos.common.spreadsheets import Text, read_text
from propos.data.files.content import LARGEST_MEMBER, is_archive
from propos.data.files.entry import Entry, Skipped, reason_for
from propos.data.files.images import STAMP, column_of, joined
from propos.data.files.names import escape_name, unescape_name
from propos.data.files.run_folders import MOST, RUN, SETTINGS, describes_run, is_run_folder
from propos.data.files.virtual_fs import timed_devices, virtual_devices

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
BLOCK = 65_536  # names that are kept as objects
_IDENTITY = 2**63 - 1  # inode numbers in 63 bits
# Size and time of change, and what changes with the content even if these two are set back (of an archive, its own).
STATUS = np.dtype([*STAMP.descr, ("changed", "<i8"), ("inode", "<i8")])
CHECKSUM = np.dtype([("crc", "<u4"), ("", "V12")])  # as long as the digest of a file


@dataclass(frozen=True)
class Listing:
    """Paths relative to a root, in order, each with its label if known."""

    root: Path
    rows: Sequence[tuple[str, str | None]]


@dataclass(frozen=True)
class Listed:
    """Files that might be images, in a stable order, as columns, and those that cannot be."""

    root: Path  # as the person gave it
    folder: Path  # that names start from; of an archive, its file
    names: pa.Array  # relative to the folder, escaped
    status: Shaped[np.ndarray, " N"]  # STATUS
    skipped: list[Skipped]
    checksums: Shaped[np.ndarray, " N"] | None = None  # of an archive's members
    labels: Shaped[np.ndarray, " N"] | None = None  # from a CSV
    timed: bool = False  # every file system keeps change times
    notes: list[str] = field(default_factory=list)  # what a person should know of how they were found

    def __len__(self) -> int:
        return len(self.names)

    def entry(self, position: int) -> Entry:
        """Return a file before it is opened."""
        name, status = self.names[position].as_py(), self.status[position]
        original, archived = unescape_name(name), self.checksums is not None
        return Entry(
            name=name,
            path=self.folder if archived else self.folder / original,
            size=int(status["size"]),
            mtime_ns=int(status["time"]),
            member=original if archived else None,
            digest=b"" if self.checksums is None else self.checksums[position].tobytes(),
        )


class _Files:
    """Files as they are found, in columns."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._names: list[pa.Array] = []
        self._status = array("q")

    def __len__(self) -> int:
        return len(self._status) // 4

    def add(self, name: str, size: int, time: int, changed: int, inode: int) -> None:
        """Add a file."""
        self._waiting.append(escape_name(name.replace(os.sep, "/")))
        self._status.extend((size, time, changed, inode & _IDENTITY))
        if len(self._waiting) == BLOCK:
            self._names.append(column_of(self._waiting))
            self._waiting = []

    def add_file(self, name: str, status: os.stat_result) -> None:
        """Add a file of the file system."""
        self.add(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def columns(self) -> tuple[pa.Array, Shaped[np.ndarray, " N"]]:
        """Return the names and the status of all files."""
        names = joined([*self._names, column_of(self._waiting)])
        return names, np.frombuffer(self._status, STATUS) if len(self) else np.empty(0, STATUS)

    def sorted_columns(self) -> tuple[pa.Array, Shaped[np.ndarray, " N"], Shaped[np.ndarray, " N"]]:
        """Return the same in the order of the names, and this order."""
        import pyarrow.compute as pc

        names, status = self.columns()
        order = pc.sort_indices(names)
        positions = order.to_numpy()
        return names.take(order), status[positions], positions


def list_files(what: str | Path | Sequence[str | Path] | Listing, progress: Progress = ignore_progress) -> Listed:
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
                f"{escape_name(str(what))}: is a virtual file system, not a folder of images; give a folder of images"
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


def _walk(root: Path, progress: Progress) -> Listed:
    """Walk a folder: first what is really in it, then what its links lead to; each folder once, each file once.

    A link is kept for later and followed under its own name, unless it leads to what is already listed; so a loop
    ends, and an image that is also linked to keeps its real name. Hard links are files like any other.
    """
    walk = _Walk(progress)
    walk.enter("", root)
    walk.follow_links()
    names, status, _ = walk.files.sorted_columns()
    timed = {device for device, _ in walk.folders} <= timed_devices()
    return Listed(root, root, names, status, _by_path(walk.skipped), timed=timed)


class _Walk:
    """The files and skipped entries that a walk has found."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.made_up = virtual_devices()
        self.files = _Files()
        self.skipped: list[Skipped] = []
        self.links: list[tuple[str, str]] = []  # a heap of names and paths
        self.folders: set[tuple[int, int]] = set()
        self.real = array("Q")  # devices and inodes of the files, until links are followed
        self.seen: set[tuple[int, int]] = set()  # the same, from then on
        self.followed: set[tuple[int, int]] = set()

    def enter(self, name: str, path: str | Path) -> None:
        """List a folder and all real folders below it."""
        pending = [(name, os.fspath(path))]
        while pending:
            name, folder = pending.pop()
            try:
                identity = _identity(Path(folder).stat())
                self.progress(len(self.files), 0)
                if identity not in self.folders and identity[0] not in self.made_up and not is_run_folder(folder):
                    pending += self.list_folder(name, folder)
                    self.folders.add(identity)
            except OSError as error:
                if not name:
                    raise InputError(f"{escape_name(folder)}: cannot be read: {reason_for(error)}") from None
                self.skip(name, f"a folder with all that is in it: {reason_for(error)}")

    def list_folder(self, name: str, folder: str) -> list[tuple[str, str]]:
        """List the files of a folder, and return the real folders in it."""
        below = []
        with os.scandir(folder) as children:
            for child in children:
                child_name = f"{name}/{child.name}" if name else child.name
                if is_ignored(child.name):
                    continue
                if child.is_symlink():
                    heapq.heappush(self.links, (child_name, child.path))
                elif child.is_dir(follow_symlinks=False):
                    below.append((child_name, child.path))
                else:
                    self.take(child_name, child.path, os.lstat)
        return below

    def take(self, name: str, path: str, look: Callable[[str], os.stat_result]) -> None:
        """List a file, unless a link has already led to it."""
        try:
            status = look(path)
        except OSError as error:  # it was removed meanwhile
            return self.skip(name, reason_for(error))
        if not stat.S_ISREG(status.st_mode):
            return self.skip(name, NOT_A_FILE)
        if self.followed and _identity(status) in self.followed:
            return None
        self.files.add_file(name, status)
        if self.seen:
            self.seen.add(_identity(status))
        else:
            self.real.extend(_identity(status))
        return None

    def follow_links(self) -> None:
        """Follow the links to folders and files not seen before."""
        if self.links:
            self.seen = {(-1, -1), *zip(self.real[::2], self.real[1::2], strict=True)}
        while self.links:
            self.follow(*heapq.heappop(self.links))

    def follow(self, name: str, path: str) -> None:
        """Follow a link."""
        try:
            status = Path(path).stat()
        except OSError as error:
            self.skip(name, BROKEN_LINK if error.errno in (errno.ENOENT, errno.ELOOP) else reason_for(error))
            return
        if stat.S_ISDIR(status.st_mode):
            self.enter(name, path)
        elif _identity(status) not in self.seen:
            self.take(name, path, os.stat)
            self.followed.add(_identity(status))

    def skip(self, name: str, reason: str) -> None:
        """Note a file that is not used."""
        self.skipped.append(Skipped(escape_name(name), reason))


def _listed(root: Path, rows: Iterable[tuple[str, str | None]]) -> Listed:
    """List the files a list names, in its order; relative paths start from the root."""
    files = _Files()
    labels: list[str | None] = []
    known: dict[str | None, str | None] = {}  # one string for each label
    skipped: list[Skipped] = []
    seen: set[str] = set()
    devices: set[int] = set()
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
        if name in seen:
            skipped.append(Skipped(escape_name(name), TWICE))
        elif not stat.S_ISREG(status.st_mode):
            skipped.append(Skipped(escape_name(name), NOT_A_FILE))
        else:
            files.add_file(name, status)
            labels.append(known.setdefault(label, label))
            devices.add(status.st_dev)
        seen.add(name)
    names, columns = files.columns()
    given = None if all(label is None for label in labels) else np.array(labels, dtype=object)
    return Listed(root, base, names, columns, skipped, labels=given, timed=devices <= timed_devices())


def _archived(path: Path) -> Listed:
    """List the members of a zip archive; nothing is ever extracted to the disk."""
    skipped: list[Skipped] = []
    try:
        own = path.stat()
        with zipfile.ZipFile(path) as archive:
            members = _without_runs(archive)
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{escape_name(str(path))}: cannot be read as a zip archive: {error}") from None
    images: dict[str, zipfile.ZipInfo] = {}
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
            images[member.filename] = member
    files, checksums = _Files(), np.zeros(len(images), CHECKSUM)
    for place, member in enumerate(images.values()):
        files.add(member.filename, member.file_size, _time(member), own.st_ctime_ns, own.st_ino)
        checksums[place]["crc"] = member.CRC
    names, status, order = files.sorted_columns()
    timed = own.st_dev in timed_devices()
    return Listed(path, path, names, status, _by_path(skipped), checksums[order], timed=timed)


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


def _time(member: zipfile.ZipInfo) -> int:
    """Return a member's time of change, in nanoseconds since 1970."""
    time = datetime.datetime(1980, 1, 1, tzinfo=datetime.UTC)
    with contextlib.suppress(ValueError):  # archives may hold dates that do not exist
        time = datetime.datetime(*member.date_time, tzinfo=datetime.UTC)
    return int(time.timestamp()) * 1_000_000_000


def _noted(text: Text, rows: Iterable[tuple[str, str | None]]) -> Listed:
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


def _by_path(skipped: list[Skipped]) -> list[Skipped]:
    return sorted(skipped, key=lambda each: each.path)
