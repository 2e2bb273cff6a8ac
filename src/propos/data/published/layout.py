"""Helpers for reading data sets in their official layouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from propos.common.errors import InputError
from propos.data.arrays import ArraySource
from propos.data.cache.images import Progress
from propos.data.files.listing import Listing
from propos.data.source import Source
from propos.data.unopened import CachePolicy, UnopenedSource

_WORDNET = re.compile(r"n\d{8}")


class MissingData(InputError):  # noqa: N818 - reads as what is wrong
    """A data set, or a file of it, is missing; `what` names it, without the set's name and advice."""

    def __init__(self, name: str, what: str, advice: str | None = None) -> None:
        super().__init__(f"{name}: {what}" + (f": {advice}" if advice else ""))
        self.name, self.what = name, what


def missing(name: str, path: Path) -> MissingData:
    """Return the error for a file that is not there; the catalogue adds where to get it."""
    return MissingData(name, f"there is no {path}")


def unopened_array(
    images: int, channels: int, height: int, width: int, read: Callable[[], ArraySource]
) -> UnopenedSource:
    """Describe a set that is one array, read when it is opened."""

    def open_array(
        side: int,
        channels: int | None = None,
        progress: Progress | None = None,
        keep: CachePolicy = "build",
        shaped: bool = False,
    ) -> Source:
        return read()

    return UnopenedSource(images, channels, height, width, open_array, labelled=True)


def class_folders(name: str, folder: Path) -> list[str]:
    """List the class folders, named by WordNet numbers, in order."""
    if not folder.is_dir():
        raise missing(name, folder)
    return sorted(child.name for child in folder.iterdir() if _WORDNET.fullmatch(child.name) and child.is_dir())


def photographs(root: Path, folder: str, label: str) -> Iterable[tuple[str, str | None]]:
    """List a folder's JPEG files in order, relative to the root, all with one label."""
    names = sorted(child.name for child in (root / folder).iterdir() if child.suffix.upper() in (".JPEG", ".JPG"))
    return [(f"{folder}/{name}", label) for name in names]


def refuse_if_empty(name: str, listing: Listing) -> None:
    """Raise the sentence for folders without photographs in them."""
    if not listing.rows:
        raise MissingData(name, f"there are no images in {listing.root}")
