"""The interface of sources, and measurements on a source before training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt8

from propos.data.files.entry import Skipped
from propos.data.files.images import Images

STATISTICS_SAMPLE = 10_000
FINGERPRINT_SAMPLE = 1_000
CHUNK = 1_024
FEW = 32  # images that are read at a time where the first may be enough

Statistics = tuple[tuple[float, ...], tuple[float, ...]]  # mean and std per channel of pixels in [0, 1]


class Source(Protocol):
    """Images in a fixed order, read by position; labels, where known, are only ever used for scoring."""

    name: str
    channels: int
    height: int
    width: int
    black: float  # the pixel values, as the person gave them, that stand for 0 and 1
    white: float
    labels: Shaped[np.ndarray, " N"] | None
    skipped: list[Skipped]  # files that were left out
    notes: list[str]  # what a person should know of how it was read
    aspects: Float[np.ndarray, " N"] | None  # width over height before an image was squashed to this shape
    frames: (
        Int[np.ndarray, "N 2"] | None
    )  # rows and columns that each image fills, if it keeps its shape; see `upright`
    statistics: Statistics | None  # what a published set is normalised by; None: by its own pixels
    unlabelled: Source | None  # more images of the kind, which are never clustered

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def batch(self, positions: Int[np.ndarray, " B"]) -> UInt8[np.ndarray, "B C H W"]:
        """Return the images at these positions."""
        ...

    def image_names(self) -> Sequence[str]:
        """Return what each image is called in the run's table: a path relative to the root, or its index."""
        ...


@runtime_checkable
class Streams(Protocol):
    """The interface of a source that decodes its images for every batch."""

    def prefetch(self, batches: Iterable[Int[np.ndarray, " B"]]) -> None:
        """Prepare these batches, which will be read in this order."""
        ...

    def readable(self, positions: Int[np.ndarray, " B"]) -> Bool[np.ndarray, " B"]:
        """Return a mask of the images that could be decoded; images that were not read yet count as good."""
        ...

    def close(self) -> None:
        """Stop decoding."""
        ...


@runtime_checkable
class Files(Protocol):
    """The interface of a source whose images are files."""

    @property
    def entries(self) -> Images:
        """The files, in the order of the images."""
        ...


@contextmanager
def closing_source(source: Source) -> Iterator[None]:
    """Stop a source's decoding at the end of the block, also after an error."""
    try:
        yield
    finally:
        if isinstance(source, Streams):
            source.close()


def prefetch(source: Source, batches: Iterable[Int[np.ndarray, " B"]]) -> None:
    """Announce the next batches; only a streaming source uses it."""
    if isinstance(source, Streams):
        source.prefetch(batches)


def readable(source: Source, positions: Int[np.ndarray, " B"]) -> Bool[np.ndarray, " B"]:
    """Return a mask of the images that could be decoded; all of them unless the source streams."""
    return source.readable(positions) if isinstance(source, Streams) else np.ones(len(positions), dtype=bool)


def upright(source: Source, image: UInt8[np.ndarray, "C H W"], position: int) -> UInt8[np.ndarray, "C h w"]:
    """Return an image of a batch upright: portrait images that keep their shape are stored on their side."""
    if source.frames is None:
        return image
    assert source.aspects is not None
    rows, columns = source.frames[position]
    filled = image[:, :rows, :columns]
    return filled.transpose(0, 2, 1) if source.aspects[position] < 1 else filled


def evenly_spaced(images: int, count: int) -> Int[np.ndarray, " n"]:
    """Return at most `count` positions, spread evenly over all images."""
    return np.linspace(0, images - 1, min(count, images)).round().astype(np.int64)


def pixel_statistics(source: Source) -> Statistics:
    """Return the mean and standard deviation per channel of pixels in [0, 1], over at most 10,000 images."""
    count = min(len(source), STATISTICS_SAMPLE)
    positions = evenly_spaced(len(source), count)
    histogram = np.zeros((source.channels, 256), np.int64)
    for start in range(0, count, CHUNK):
        for image in source.batch(positions[start : start + CHUNK]):
            for channel, values in enumerate(image):
                histogram[channel] += np.bincount(values.ravel(), minlength=256)
    levels = np.arange(256) / 255.0
    total, squares = histogram @ levels, histogram @ levels**2
    # What no image fills is black and adds nothing to the sums.
    frames = None if source.frames is None else source.frames[positions].prod(axis=1, dtype=np.int64)
    pixels_seen = count * source.height * source.width if frames is None else int(frames.sum())
    mean = total / pixels_seen
    variance = np.maximum(squares / pixels_seen - mean**2, 0.0)
    # A channel without contrast has no scale of its own.
    std = np.where(variance > 1e-12, np.sqrt(variance), 1.0)
    return tuple(mean.tolist()), tuple(std.tolist())


def image_digests(source: Source) -> Iterator[bytes]:
    """Yield a hash of each image's pixels, in order."""
    for start in range(0, len(source), FEW):
        positions = np.arange(start, min(start + FEW, len(source)))
        for image, position in zip(source.batch(positions), positions.tolist(), strict=True):
            yield hashlib.blake2b(upright(source, image, position).tobytes(), digest_size=16).digest()


def positions_not_in(source: Source, others: Source) -> list[int]:
    """Return where a source's images are whose pixels none of the others has."""
    there = set(image_digests(others))
    return [place for place, digest in enumerate(image_digests(source)) if digest not in there]


def distinct_images(source: Source, enough: int) -> int:
    """Count exactly different images, stopping once there are `enough`."""
    seen: set[bytes] = set()
    for digest in image_digests(source):
        seen.add(digest)
        if len(seen) >= enough:
            break
    return len(seen)


def fingerprint(source: Source) -> str:
    """Return a hash of the images' number, shape and names, and of their files, or of the pixels of up to 1,000.

    Files are known by their size and a hash of their ends, so that none has to be decoded.
    """
    digest = hashlib.blake2b(f"{len(source)} {source.channels} {source.height} {source.width}".encode(), digest_size=16)
    for name in source.image_names():
        digest.update(name.encode() + b"\n")
    if isinstance(source, Files):
        digest.update(source.entries.stamps["size"].tobytes() + source.entries.facts["digest"].tobytes())
        return digest.hexdigest()
    positions = evenly_spaced(len(source), FINGERPRINT_SAMPLE)
    for start in range(0, len(positions), CHUNK):
        digest.update(source.batch(positions[start : start + CHUNK]).tobytes())
    return digest.hexdigest()
