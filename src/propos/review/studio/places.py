"""The folders that Studio may read and write, and what a person sees of them while choosing one."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from propos.common.errors import InputError, describe_os_error, shown
from propos.data import escape_name, evenly_spaced, unescape_name
from propos.data.files.home import expanded
from propos.review.server.originals import browser_kind

LONGEST = 4096  # characters of a path
MOST_ENTRIES = 20_000  # of a folder that are looked at
MOST_LISTED = 1_000  # folders that are listed
MOST_TRIED = 60  # files that are opened to find pictures
PICTURES = 8
PATIENCE = 3.0  # seconds for finding a folder that was dropped
DEEPEST = 3  # folders below the chosen one in which pictures are looked for


class Places:
    """The allowed folders. Every path is resolved first, so that a link leads nowhere else."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(dict.fromkeys(root.resolve() for root in roots))

    def path(self, text: str) -> Path:
        """Return the real path that a text means; raise InputError if it is outside the allowed folders."""
        name = unescape_name(text.strip())
        if not name or len(name) > LONGEST or "\0" in name:
            raise InputError(f"{shown(text)}: not a path")
        try:
            path = expanded(name)
            real = path.resolve() if path.is_absolute() else None
        except (OSError, RuntimeError, ValueError):  # a name that is too long, links in a circle
            raise InputError(f"{shown(text)}: not a path of this machine") from None
        if real is None:
            raise InputError(f"{shown(text)}: write the whole path, as in {escape_name(str(self.roots[0]))}")
        if not any(real.is_relative_to(root) for root in self.roots):
            allowed = ", ".join(escape_name(str(root)) for root in self.roots)
            raise InputError(f"{shown(text)}: outside the folders that Studio may use ({allowed})")
        return real

    def folder(self, text: str) -> Path:
        """Return the real path of a folder."""
        path = self.path(text)
        with suppress(OSError):  # a name that is too long, a folder above that may not be read
            if path.is_dir():
                return path
        raise InputError(f"{shown(escape_name(str(path)), quoted=False)}: no such folder")

    def output(self, text: str) -> Path:
        """Return the path of something to be written; its folder must exist, itself must not."""
        name = Path(unescape_name(text.strip()))
        if name.name in ("", ".."):
            raise InputError(f"{shown(text)}: not a path to write to")
        path = self.folder(escape_name(str(name.parent))) / name.name
        if os.path.lexists(path):
            raise InputError(f"{escape_name(str(path))}: already exists: choose another name")
        return path

    def look(self, text: str | None) -> dict[str, Any]:
        """Describe a folder: its folders, how many files it has, and some of its pictures; without one, the roots."""
        if text is None and len(self.roots) > 1:
            return {"path": None, "parent": None, "folders": [_named(root, root) for root in self.roots], "files": 0,
                    "more": False, "pictures": []}  # fmt: skip
        path = self.folder(text) if text is not None else self.roots[0]
        try:
            folders, files, more = _entries(path)
        except OSError as error:
            raise InputError(describe_os_error(error)) from None
        return {
            "path": escape_name(str(path)),
            "parent": self._parent(path),
            "folders": [_named(each, path) for each in sorted(folders, key=_order)[:MOST_LISTED]],
            "files": len(files),
            "more": more or len(folders) > MOST_LISTED,
            "pictures": [escape_name(str(each)) for each in _pictures(path)],
        }

    def find(self, name: str, files: Sequence[str]) -> str:
        """Return the path of a folder by its name and some of its files, as far as it is found in a few seconds.

        A browser says no more of a folder that was dropped on the page.
        """
        end, waiting = time.monotonic() + PATIENCE, deque(self.roots)
        while waiting and time.monotonic() < end:
            path = waiting.popleft()
            if path.name == name and all(os.path.lexists(path / each) for each in files if "/" not in each):
                return escape_name(str(path))
            with suppress(OSError):
                waiting.extend(each for each in sorted(_entries(path)[0]) if not each.is_symlink())
        raise InputError(f"{shown(name)}: not found in the folders that Studio may use: choose it in the list")

    def picture(self, text: str) -> tuple[Path, str] | None:
        """Return an image file that a browser can show, and its media type."""
        path = self.path(text)
        kind = browser_kind(path)
        return None if kind is None else (path, kind)

    def _parent(self, path: Path) -> str | None:
        """Return the folder above; "" for the list of all allowed folders, None for the last one."""
        if path not in self.roots:
            return escape_name(str(path.parent))
        return "" if len(self.roots) > 1 else None


def _named(path: Path, within: Path) -> dict[str, str]:
    name = str(path) if path == within else path.name
    return {"name": escape_name(name), "path": escape_name(str(path))}


def _order(path: Path) -> tuple[str, str]:
    return path.name.casefold(), path.name


def _entries(path: Path) -> tuple[list[Path], list[Path], bool]:
    """Return the folders and the files of a folder without hidden ones, and whether there are more."""
    folders: list[Path] = []
    files: list[Path] = []
    with os.scandir(path) as found:
        for entry in islice(found, MOST_ENTRIES):
            if not entry.name.startswith("."):
                (folders if entry.is_dir() else files).append(path / entry.name)
        return folders, files, next(found, None) is not None


def _pictures(path: Path) -> list[Path]:
    """Return a few pictures of a folder, from all over it."""
    files = list(islice(_files(path, DEEPEST), MOST_ENTRIES))
    tried = [files[place] for place in evenly_spaced(len(files), min(len(files), MOST_TRIED))]
    found = [each for each in tried if browser_kind(each) is not None]
    return [found[place] for place in evenly_spaced(len(found), min(len(found), PICTURES))]


def _files(path: Path, deep: int) -> Iterator[Path]:
    try:
        folders, files, _ = _entries(path)
    except OSError:
        return
    yield from sorted(files)
    for folder in sorted(folders) if deep else ():
        if not folder.is_symlink():
            yield from _files(folder, deep - 1)
