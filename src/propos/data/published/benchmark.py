"""Published data sets: their facts, and how each is found under the data root."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from propos.common.errors import InputError
from propos.data.cache.images import Progress
from propos.data.files.home import expanded
from propos.data.published.layout import MissingData
from propos.data.source import Source, Statistics
from propos.data.unopened import CachePolicy, Open, UnopenedSource

Splits = tuple[str, ...]
Find = Callable[[str, Path, Splits], UnopenedSource]


@dataclass(frozen=True)
class Download:
    """A file offered for download, and the checksum its publishers or their users give for it."""

    url: str
    md5: str

    @property
    def file(self) -> str:
        """The file's name."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Benchmark:
    """A published data set; the first of its splits is the paper's."""

    name: str
    images: int  # in the first of its splits
    classes: int
    size: str  # of an image
    splits: tuple[str, ...]
    folders: tuple[str, ...]  # where it may be under the data root, the official place first
    home: str  # where to get it
    find: Find
    statistics: Statistics | None = None
    downloads: tuple[Download, ...] = ()

    def folder(self, root: Path) -> Path:
        """Return the folder it is in, or should be in."""
        return next((root / name for name in self.folders if (root / name).is_dir()), root / self.folders[0])

    def look(self, root: Path | None, split: str | None = None) -> UnopenedSource:
        """Survey a split under the data root; if it is missing, raise with where to get it and where to put it."""
        split = split or self.splits[0]
        name = self.name if split == self.splits[0] else f"{self.name}:{split}"
        if split not in self.splits:
            raise InputError(f"{name}: {self.name} has no split {split}: choose from {', '.join(self.splits)}")
        if root is None:
            raise InputError(f"{name}: data folder not set: give --data FOLDER, or set PROPOS_DATA")
        folder = self.folder(root)
        if not folder.is_dir():
            raise MissingData(name, "not found", self.advice(root))
        try:
            unopened = self.find(name, folder, tuple(split.split("+")))
        except MissingData as error:
            raise MissingData(error.name, error.what, self.advice(root)) from None
        return replace(unopened, open=self._opener(unopened, name), published=self.name)

    def advice(self, root: Path) -> str:
        """Return where to get it and where to put it, in words."""
        fetch = f", or run `propos datasets fetch {self.name} --data {root}`" if self.downloads else ""
        return f"get it from {self.home} and put it at {root / self.folders[0]}{fetch}"

    def _opener(self, unopened: UnopenedSource, name: str) -> Open:
        def open_named(
            side: int,
            channels: int | None = None,
            progress: Progress | None = None,
            keep: CachePolicy = "build",
            shaped: bool = False,
        ) -> Source:
            source = unopened.open(side, channels, progress, keep, shaped)
            source.name, source.statistics = name, self.statistics
            return source

        return open_named


def data_root(given: str | Path | None = None) -> Path | None:
    """Return the folder of all data sets: the one given, else PROPOS_DATA; None without either."""
    named = given or os.environ.get("PROPOS_DATA")
    return expanded(named).absolute() if named else None
