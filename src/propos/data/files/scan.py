"""From what a person names to the images in it: files are listed, recognised by content, and their headers read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Int, Shaped

from propos.common.errors import InputError
from propos.common.plurals import counted
from propos.common.progress import Progress, ShowTask, ignore_progress, show_nothing
from propos.data.files.content import (
    AN_ARCHIVE,
    HEIC,
    KINDS,
    NEEDS_HEIC,
    NOT_AN_IMAGE,
    edges,
    is_archive,
    kind_of,
    reads_heic,
    without_warnings,
)
from propos.data.files.entry import EMPTY, Entry, Skipped, Unreadable, reason_for
from propos.data.files.headers import read_header
from propos.data.files.images import FACTS, STAMP, Images, Names
from propos.data.files.listing import Listed, Listing, list_files
from propos.data.files.names import escape_name

THREADS = 16  # more than cores: on a network's disk they mostly wait
HANDFUL = 16  # files by which the remaining time is estimated
OFTEN = 200  # files between two words on how far it is
AHEAD = 4_096  # files that threads are given at a time
SLOW = 0.001  # seconds a file: below, threads only take turns at Python's lock, and half as many files a second
SMALL = 64  # images of one size up to this are used as they are

What = str | Path | Sequence[str | Path] | Listing
Item = TypeVar("Item")
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Scan:
    """The images found, in a stable order, and the files that are none."""

    root: Path
    images: Images
    skipped: list[Skipped]
    notes: list[str] = field(default_factory=list)  # what a person should know of how they were found

    @property
    def channels(self) -> int:
        """1 when every image is greyscale, else 3."""
        return 1 if self.images.facts["grey"].all() else 3

    @property
    def common_size(self) -> tuple[int, int] | None:
        """The width and height all images share, if they do."""
        facts = self.images.facts
        width, height = int(facts["width"][0]), int(facts["height"][0])
        return (width, height) if (facts["width"] == width).all() and (facts["height"] == height).all() else None

    @property
    def median_size(self) -> tuple[float, float]:
        """The median width and the median height."""
        facts = self.images.facts
        return float(np.median(facts["width"])), float(np.median(facts["height"]))

    @property
    def small_side(self) -> int | None:
        """The side at which small images of one size are kept as they are (the longer one, if they are not square)."""
        size = self.common_size
        return max(size) if size is not None and max(size) <= SMALL else None

    def without(self, damaged: Sequence[Skipped]) -> Scan:
        """Return the scan without images that turned out to be damaged; raise InputError if none is left."""
        if not damaged:
            return self
        names = {skipped.path for skipped in damaged}
        kept = np.array([name not in names for name in self.images.names], dtype=bool)
        rest = replace(self, images=self.images.take(kept), skipped=[*self.skipped, *damaged])
        refuse_if_empty(rest)
        return rest


@dataclass(frozen=True)
class Looked:
    """The facts of listed files, as far as they are known, and why some are no images."""

    facts: Shaped[np.ndarray, " N"]  # FACTS; the kind is 0 where it is unknown or none
    reasons: dict[int, str]
    passing: set[int] = field(default_factory=set)  # reasons that another day may not hold, such as permissions

    @classmethod
    def nothing(cls, listed: Listed) -> Looked:
        """Return that nothing is known."""
        return cls(np.zeros(len(listed), FACTS), {})


def scan(what: What, show_task: ShowTask = show_nothing) -> Scan:
    """Find the images in a folder, a list of paths, a .txt or .csv of paths, a .zip, or one image file.

    Files that are no images are listed with the reason; only a path that does not exist, a list that cannot be read,
    and no image at all are errors.
    """
    listed = listing(what, show_task)
    looked = Looked.nothing(listed)
    look_at(listed, looked, np.arange(len(listed)), show_task)
    return scanned(listed, looked)


def listing(what: What, show_task: ShowTask) -> Listed:
    """List the files."""
    with show_task("Looking for files") as progress:
        return list_files(what, progress)


def look_at(listed: Listed, looked: Looked, positions: Int[np.ndarray, " M"], show_task: ShowTask) -> None:
    """Read the headers of files; the facts of a file whose digest is already known are kept."""

    def look(position: int) -> tuple[object, ...] | None:
        before = looked.facts[position]
        return _read(listed.entry(position), before["digest"].tobytes() if before["kind"] else b"")

    with show_task("Reading the images' headers") as progress, without_warnings():
        for position, facts in zip(positions.tolist(), read_all(positions.tolist(), look, progress), strict=True):
            if isinstance(facts, Exception):
                looked.facts[position] = np.zeros((), FACTS)
                looked.reasons[position] = reason_for(facts)
                if isinstance(facts, MemoryError) or (isinstance(facts, OSError) and facts.errno is not None):
                    looked.passing.add(position)
            elif facts is not None:
                looked.facts[position] = facts


def scanned(listed: Listed, looked: Looked, notes: Sequence[str] = ()) -> Scan:
    """Return the images among files that were looked at; raise InputError if there is none."""
    found = looked.facts["kind"] > 0
    skipped = [Skipped(listed.names[position].as_py(), reason) for position, reason in sorted(looked.reasons.items())]
    archive = listed.checksums is not None
    every = Images(listed.folder, archive, Names(listed.names), _stamps(listed), looked.facts, listed.labels)
    images = every if found.all() else every.take(found)
    result = Scan(listed.root, images, [*listed.skipped, *skipped], [*listed.notes, *notes])
    refuse_if_empty(result)
    return result


def refuse_if_empty(scanned: Scan) -> None:
    """Raise the sentence a person gets when no image is left."""
    if len(scanned.images):
        return
    root = escape_name(str(scanned.root))
    if not scanned.skipped:
        raise InputError(f"{root}: there are no images in it")
    first, others = scanned.skipped[0], len(scanned.skipped) - 1
    more = f", and {counted(others, 'more file')}" if others else ""
    raise InputError(f"{root}: no image in it can be read: {first.path} ({first.reason}){more}")


def read_all(
    items: Sequence[Item], look: Callable[[Item], Seen], progress: Progress = ignore_progress
) -> Iterator[Seen | Exception]:
    """Look at every item, and yield what was seen or why not, in order; where files are slow, many at a time."""

    def attempt(item: Item) -> Seen | Exception:
        try:
            return look(item)
        except Exception as error:  # a damaged file may make a reader raise anything: it is skipped
            return error

    def count(results: Iterable[Seen | Exception], done: int) -> Iterator[Seen | Exception]:
        for number, result in enumerate(results, start=done + 1):
            yield result
            if number % OFTEN == 0:
                progress(number, len(items))

    begin = time.perf_counter()
    first = [attempt(item) for item in items[:HANDFUL]]
    slow = time.perf_counter() - begin >= SLOW * HANDFUL
    yield from count(first, 0)
    if not slow:
        yield from count(map(attempt, items[HANDFUL:]), HANDFUL)
        return
    with ThreadPoolExecutor(min(THREADS, 4 * (os.cpu_count() or 1))) as threads:
        for start in range(HANDFUL, len(items), AHEAD):
            yield from count(threads.map(attempt, items[start : start + AHEAD]), start)


def _read(entry: Entry, known: bytes) -> tuple[object, ...] | None:
    """Return an image's facts, by its content; None if its digest is the one known."""
    if entry.size == 0:
        raise Unreadable(EMPTY)
    head, digest = edges(entry)
    if digest == known:
        return None
    kind = kind_of(head)
    if kind is None:
        raise Unreadable(AN_ARCHIVE if is_archive(entry.name, head) else NOT_AN_IMAGE)
    if kind == HEIC and not reads_heic():
        raise Unreadable(NEEDS_HEIC)
    taken, camera, width, height, grey = read_header(replace(entry, kind=kind, digest=digest))
    return digest, taken, camera, width, height, KINDS.index(kind), grey


def _stamps(listed: Listed) -> Shaped[np.ndarray, " N"]:
    stamps = np.empty(len(listed), STAMP)
    for name in STAMP.names or ():
        stamps[name] = listed.status[name]
    return stamps
