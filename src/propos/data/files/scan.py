"""From what a person names to the images in it, by content."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from propos.common.errors import InputError
from propos.common.plurals import counted
from propos.common.progress import Progress, ShowTask, ignore_progress, show_nothing
from propos.data.files.content import AN_ARCHIVE, HEIC, NEEDS_HEIC, NOT_AN_IMAGE, edges, is_archive, kind_of, reads_heic
from propos.data.files.entry import EMPTY, Entry, Scan, Skipped, Unreadable, reason_for
from propos.data.files.listing import Listing, list_files
from propos.data.files.names import escape_name

THREADS = 16  # more than cores: on a network's disk they mostly wait
HANDFUL = 16  # files by which the remaining time is estimated
OFTEN = 200  # files between two words on how far it is
SLOW = 0.001  # seconds a file: below, threads only take turns at Python's lock, and half as many files a second

What = str | Path | Sequence[str | Path] | Listing
Seen = TypeVar("Seen")


def scan(what: What, show_task: ShowTask = show_nothing) -> Scan:
    """Find the images in a folder, a list of paths, a .txt or .csv of paths, a .zip, or one image file.

    Files that are no images are listed with the reason; only a path that does not exist, a list that cannot be read,
    and no image at all are errors.
    """
    with show_task("Looking for files") as progress:
        listed = list_files(what, progress)
    with show_task("Telling images from other files") as progress:
        images, skipped = read_entries(listed.images, _identify, progress)
    scanned = Scan(listed.root, images, [*listed.skipped, *skipped], listed.notes)
    refuse_if_empty(scanned)
    return scanned


def refuse_if_empty(scanned: Scan) -> None:
    """Raise the sentence a person gets when no image is left."""
    if scanned.images:
        return
    root = escape_name(str(scanned.root))
    if not scanned.skipped:
        raise InputError(f"{root}: there are no images in it")
    first, others = scanned.skipped[0], len(scanned.skipped) - 1
    more = f", and {counted(others, 'more file')}" if others else ""
    raise InputError(f"{root}: no image in it can be read: {first.path} ({first.reason}){more}")


def read_entries(
    entries: Iterable[Entry], look: Callable[[Entry], Seen], progress: Progress = ignore_progress
) -> tuple[list[Seen], list[Skipped]]:
    """Look at every entry and part what was seen from what could not be read; where files are slow, many at a time."""

    def attempt(entry: Entry) -> Seen | Skipped:
        try:
            return look(entry)
        except Exception as error:  # a damaged file may make a reader raise anything: it is skipped
            return Skipped(entry.name, reason_for(error))

    def take(attempts: Iterable[Seen | Skipped]) -> None:
        for result in attempts:
            results.append(result)
            if len(results) % OFTEN == 0:
                progress(len(results), len(every))

    every = list(entries)
    results: list[Seen | Skipped] = []
    begin = time.perf_counter()
    take(map(attempt, every[:HANDFUL]))
    if time.perf_counter() - begin < SLOW * HANDFUL:
        take(map(attempt, every[HANDFUL:]))
    else:
        with ThreadPoolExecutor(min(THREADS, 4 * (os.cpu_count() or 1))) as threads:
            take(threads.map(attempt, every[HANDFUL:]))
    skipped = [result for result in results if isinstance(result, Skipped)]
    return [result for result in results if not isinstance(result, Skipped)], skipped


def _identify(entry: Entry) -> Entry:
    """Set an entry's kind by its content, and its fingerprint."""
    if entry.size == 0:
        raise Unreadable(EMPTY)
    head, digest = edges(entry)
    kind = kind_of(head)
    if kind is None:
        raise Unreadable(AN_ARCHIVE if is_archive(entry.name, head) else NOT_AN_IMAGE)
    if kind == HEIC and not reads_heic():
        raise Unreadable(NEEDS_HEIC)
    return replace(entry, kind=kind, digest=digest)
