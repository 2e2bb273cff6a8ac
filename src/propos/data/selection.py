"""Some images of a source, as a source of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Int, UInt8

from propos.data.files.images import Images
from propos.data.source import Files, Source, Streams, evenly_spaced, prefetch, readable


class Selection:
    """The images of a source at some positions, in ascending order; no image is copied."""

    def __init__(self, source: Source, positions: Int[np.ndarray, " n"]) -> None:
        self.source, self.positions = source, positions
        self.name, self.notes, self.skipped = source.name, source.notes, source.skipped
        self.channels, self.height, self.width = source.channels, source.height, source.width
        self.black, self.white = source.black, source.white
        self.labels = None if source.labels is None else source.labels[positions]
        self.aspects = None if source.aspects is None else source.aspects[positions]
        self.frames = None if source.frames is None else source.frames[positions]
        self.statistics = source.statistics
        self.unlabelled: Source | None = source.unlabelled

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def entries(self) -> Images:
        """The files of the images, where they are files."""
        if not isinstance(self.source, Files):
            raise AttributeError("entries")
        return self.source.entries.take(self.positions)

    def batch(self, positions: Int[np.ndarray, " B"]) -> UInt8[np.ndarray, "B C H W"]:
        """Return the images at these positions of the selection."""
        return self.source.batch(self.positions[positions])

    def prefetch(self, batches: Iterable[Int[np.ndarray, " B"]]) -> None:
        """Announce the next batches."""
        prefetch(self.source, (self.positions[batch] for batch in batches))

    def readable(self, positions: Int[np.ndarray, " B"]) -> Bool[np.ndarray, " B"]:
        """Return a mask of the images that could be decoded."""
        return readable(self.source, self.positions[positions])

    def close(self) -> None:
        """Stop decoding."""
        if isinstance(self.source, Streams):
            self.source.close()

    def image_names(self) -> Sequence[str]:
        """Return the names of the images."""
        if isinstance(self.source, Files):
            return self.entries.names
        names = self.source.image_names()
        return [names[position] for position in self.positions]


def select_some(source: Source, most: int) -> Source:
    """Return at most `most` images, spread evenly over a source, and as many of its unlabelled ones."""
    chosen = Selection(source, evenly_spaced(len(source), most))
    if source.unlabelled is not None:
        chosen.unlabelled = Selection(source.unlabelled, evenly_spaced(len(source.unlabelled), most))
    return chosen


def select_names(source: Source, names: Collection[str]) -> Source:
    """Return the images of these names, in the source's order; the source itself if it has no others."""
    if len(source) <= len(names):
        return source
    if isinstance(source, Files):
        found = source.entries.places(list(names))
        return Selection(source, np.sort(found[found >= 0]))
    wanted = set(names)
    places = (place for place, name in enumerate(source.image_names()) if name in wanted)
    return Selection(source, np.fromiter(places, np.int64))
