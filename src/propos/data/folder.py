"""Folders of images as sources: decoded once and read from the cache, or streamed from their files."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt8

from propos.data.cache.images import Cached, Layout, Progress, cached
from propos.data.cache.index import indexed_scan
from propos.data.cache.limit import is_cached, refusal
from propos.data.decoding.decode import kept_shape
from propos.data.decoding.pool import DecodePool, own_cores
from propos.data.decoding.worker import Decoded
from propos.data.files.entry import DAMAGED, Entry, Skipped
from propos.data.files.names import escape_name
from propos.data.files.scan import Scan, What
from propos.data.source import Source, Statistics
from propos.data.unopened import CachePolicy

UNREADABLE = 128  # the grey that stands for a streamed image found to be damaged
MOST_AHEAD = 4
_Key = tuple[bytes, int]  # positions, and the side of the middle squares that images are cut to


class FolderSource:
    """Images of a folder, read from the cache: squares, or each in its shape."""

    black, white = 0.0, 255.0
    statistics: Statistics | None = None
    unlabelled: Source | None = None

    def __init__(self, scan: Scan, store: Cached, channels: int, name: str) -> None:
        self.name = name
        self.root = scan.root
        self.entries = scan.images
        self.skipped = scan.skipped
        self.images = store.images  # squares, or all pixels one behind the other
        self._checks = store.checks
        self.aspects: Float[np.ndarray, " N"] | None = store.aspects
        self.frames: Int[np.ndarray, "N 2"] | None = store.frames
        self.labels, self.notes = _given_labels(scan)
        self.channels = channels
        if store.frames is None:
            _, self.height, self.width, _ = self.images.shape
        else:
            self.height, self.width = store.frames.max(axis=0).tolist()
            self._ends = np.cumsum(channels * store.frames.prod(axis=1, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.entries)

    def batch(self, positions: Int[np.ndarray, " B"]) -> UInt8[np.ndarray, "B C H W"]:
        """Return the images at these positions."""
        batch = np.empty((len(positions), self.channels, self.height, self.width), np.uint8)
        for frame, position in zip(batch, positions, strict=True):  # one by one: less memory than all at once
            _put_in_frame(frame, self._image(position))
        return batch

    def _image(self, position: int) -> UInt8[np.ndarray, "rows columns C"]:
        """Return an image: a square, or an image in its shape."""
        if self.frames is None:
            square: UInt8[np.ndarray, "rows columns C"] = self.images[position : position + 1][0]
            self._checks.check(position, square)
            return square
        rows, columns = self.frames[position]
        end = self._ends[position]
        pixels = self.images[end - rows * columns * self.channels : end]
        self._checks.check(position, pixels)
        return pixels.reshape(rows, columns, self.channels)

    def image_names(self) -> Sequence[str]:
        """Return each image's path relative to the root."""
        return self.entries.names


class StreamedSource:
    """Images decoded from their files on demand, in worker processes.

    For sets too large to cache. A damaged file becomes a grey image and is listed in `skipped`.
    """

    black, white = 0.0, 255.0
    statistics: Statistics | None = None
    unlabelled: Source | None = None

    def __init__(
        self,
        scan: Scan,
        side: int,
        channels: int,
        name: str,
        workers: int | None = None,
        shaped: bool = False,
    ) -> None:
        self.name = name
        self.root = scan.root
        self.entries = scan.images
        self.skipped = list(scan.skipped)
        width, height = (scan.images.facts[name].astype(np.float64) for name in ("width", "height"))
        self.aspects: Float[np.ndarray, " N"] | None = width / height
        self.labels, self.notes = _given_labels(scan)
        self.height = self.width = self.side = side
        self.channels, self.shaped = channels, shaped
        self.frames: Int[np.ndarray, "N 2"] | None = None
        if shaped:
            sizes, place = np.unique(scan.images.facts[["width", "height"]], return_inverse=True)
            self.frames = np.array([kept_shape(wide, high, side) for wide, high in sizes.tolist()])[place]
            self.height, self.width = self.frames.max(axis=0).tolist()
        self._pool = DecodePool(side, channels, own_cores() if workers is None else workers, shaped=shaped)
        weakref.finalize(self, self._pool.close)
        self._ahead: dict[_Key, list[Future[Decoded]]] = {}
        self._announced: Iterator[tuple[Int[np.ndarray, " B"], int]] = iter(())
        self._damaged: set[str] = set()

    def __len__(self) -> int:
        return len(self.entries)

    def prefetch(self, batches: Iterable[Int[np.ndarray, " B"]], middle: int = 0) -> None:
        """Decode these batches in this order, four ahead; earlier requests are dropped. `middle` is that of `batch`."""
        self._forget()
        self._announced = ((positions, self._cut(positions, middle)) for positions in batches)
        self._look_ahead()

    def readable(self, positions: Int[np.ndarray, " B"]) -> Bool[np.ndarray, " B"]:
        """Return a mask of the images that could be decoded; images that were not read yet count as good."""
        if not self._damaged:
            return np.ones(len(positions), dtype=bool)
        return np.array([self.entries.names[int(position)] not in self._damaged for position in positions], dtype=bool)

    def batch(self, positions: Int[np.ndarray, " B"], middle: int = 0) -> UInt8[np.ndarray, "B C H W"]:
        """Return the images at these positions.

        With `middle` they are upright squares of this side, of the middle of the images in their shape, if none of them
        is smaller than the source's side; to resize no more than that takes half of the time.
        """
        cut = self._cut(positions, middle)
        futures = self._ahead.pop(_key(positions, cut), None) or self._submit(positions, cut)
        self._look_ahead()
        height, width = (cut, cut) if cut else (self.height, self.width)
        grey = np.full((height, width, self.channels), UNREADABLE, np.uint8)
        images = [grey] * len(positions)
        for share, future in zip(_shares(positions, self._pool.workers), futures, strict=True):
            decoded = future.result()
            good = [place for index, place in enumerate(share) if index not in decoded.failed]
            for place, image in zip(good, decoded.images, strict=True):
                if self.frames is None or image.shape[:2] == (
                    (cut, cut) if cut else tuple(self.frames[positions[place]])
                ):
                    images[place] = image
                else:
                    self._note(self.entries[int(positions[place])], DAMAGED)  # it is smaller than its header says
            for index, reason in decoded.failed.items():
                self._note(self.entries[int(positions[share[index]])], reason)
        return in_frames(images, height, width)

    def image_names(self) -> Sequence[str]:
        """Return each image's path relative to the root."""
        return self.entries.names

    def close(self) -> None:
        """Stop the worker processes."""
        self._forget()
        self._pool.close()

    def __enter__(self) -> StreamedSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut(self, positions: Int[np.ndarray, " B"], middle: int) -> int:
        """Return the side of the middle squares that images are cut to: 0 if one of them is smaller."""
        return middle if self.frames is not None and (self.frames[positions, 0] == self.side).all() else 0

    def _look_ahead(self) -> None:
        while len(self._ahead) < MOST_AHEAD and (announced := next(self._announced, None)) is not None:
            self._ahead[_key(*announced)] = self._submit(*announced)

    def _forget(self) -> None:
        self._announced = iter(())
        for future in (future for futures in self._ahead.values() for future in futures):
            future.cancel()
        self._ahead.clear()

    def _submit(self, positions: Int[np.ndarray, " B"], cut: int) -> list[Future[Decoded]]:
        shares = _shares(positions, self._pool.workers)
        return [self._pool.submit([self.entries[int(positions[place])] for place in share], cut) for share in shares]

    def _note(self, entry: Entry, reason: str) -> None:
        if entry.name not in self._damaged:
            self._damaged.add(entry.name)
            self.skipped.append(Skipped(entry.name, reason))


def open_cached_or_streamed(
    what: What, scan: Scan, layout: Layout, progress: Progress | None, keep: CachePolicy
) -> FolderSource | StreamedSource:
    """Open images from their cache, building it if it may be built, else stream them."""
    kept = scan.images, *_fitting(layout, scan)
    if (keep != "stream" and is_cached(*kept)) or (keep == "build" and refusal(*kept) is None):
        return _from_cache(what, scan, layout, progress)
    return _streamed(what, scan, layout)


def open_folder(
    what: What,
    side: int,
    channels: int | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
    shaped: bool = False,
) -> FolderSource:
    """Open a folder, list, archive or image as a source of squares of this side; build its cache if needed.

    With `shaped` images keep their shape, with `side` as their shorter side. Channels are 1 if all images are
    greyscale, else 3. Images of one common size up to 64 × 64 keep it (as a square of the longer side), regardless of
    `side`.
    """
    found = indexed_scan(what)
    return _from_cache(what, found, Layout(side, channels or found.channels, shaped), progress, workers)


def _from_cache(
    what: What, scan: Scan, layout: Layout, progress: Progress | None, workers: int | None = None
) -> FolderSource:
    store = cached(scan.images, scan.root, _fitting(layout, scan), progress, workers)
    return FolderSource(scan.without(store.skipped), store, layout.channels, _name(what, scan.root))


def open_streamed(
    what: What,
    side: int,
    channels: int | None = None,
    workers: int | None = None,
    shaped: bool = False,
) -> StreamedSource:
    """Open a folder, list, archive or image as a source that decodes images for every batch."""
    found = indexed_scan(what)
    return _streamed(what, found, Layout(side, channels or found.channels, shaped), workers)


def _streamed(what: What, scan: Scan, layout: Layout, workers: int | None = None) -> StreamedSource:
    side, channels, shaped = _fitting(layout, scan)
    return StreamedSource(scan, side, channels, _name(what, scan.root), workers, shaped)


def _fitting(layout: Layout, scan: Scan) -> Layout:
    """Return the layout; small images of one common size keep it."""
    small = scan.small_side
    return layout if small is None else Layout(small, layout.channels)


def in_frames(
    images: Sequence[UInt8[np.ndarray, "rows columns C"]], height: int, width: int
) -> UInt8[np.ndarray, "B C H W"]:
    """Return images as one array of this height and width, each from its first row and column on, the rest black."""
    batch = np.empty((len(images), images[0].shape[2], height, width), np.uint8)
    for frame, image in zip(batch, images, strict=True):
        _put_in_frame(frame, image)
    return batch


def _put_in_frame(frame: UInt8[np.ndarray, "C H W"], image: UInt8[np.ndarray, "rows columns C"]) -> None:
    """Write an image into a frame, from its first row and column on; the rest becomes black."""
    rows, columns = image.shape[:2]
    frame[:, :rows, :columns] = image.transpose(2, 0, 1)
    frame[:, rows:], frame[:, :rows, columns:] = 0, 0


def _name(what: What, root: Path) -> str:
    path = Path(what) if isinstance(what, str | Path) else root
    return escape_name(path.absolute().name or str(path))


def _given_labels(scan: Scan) -> tuple[Shaped[np.ndarray, " N"] | None, list[str]]:
    """Return the labels a CSV gave, if it gave every image one, and what a person should know."""
    labels = scan.images.labels
    if labels is None:
        return None, scan.notes
    without = np.flatnonzero([label is None for label in labels])
    if len(without) == 0:
        return np.array(labels.tolist()), scan.notes
    if len(without) == len(labels):
        return None, scan.notes
    first = scan.images.names[int(without[0])]
    some = f"{len(without):,} of {len(labels):,} images have no label, the first {first}"
    return None, [*scan.notes, f"{some}: no labels are used; give every image one"]


def _key(positions: Int[np.ndarray, " B"], cut: int) -> _Key:
    return np.asarray(positions, dtype=np.int64).tobytes(), cut


def _shares(positions: Int[np.ndarray, " B"], workers: int) -> list[list[int]]:
    """Deal the places of a batch out to the workers."""
    parts = np.array_split(np.arange(len(positions)), max(1, min(workers, len(positions))))
    return [part.tolist() for part in parts]
