"""Images held in one numpy array, in memory or in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8

from propos.common.errors import InputError
from propos.common.spreadsheets import decoded
from propos.data.decoding.levels import to_bytes
from propos.data.files.entry import Skipped
from propos.data.memory import check_fits
from propos.data.source import Source, Statistics
from propos.runs.rows import ArrayFile

CHUNK = 1 << 22  # numbers that are scaled at a time
SMALLEST_SIDE = 4


class ArraySource:
    """A source over an array of uint8 images, channels last."""

    aspects: Float[np.ndarray, " N"] | None = None  # images are the shape they were given in
    frames: Int[np.ndarray, "N 2"] | None = None
    statistics: Statistics | None = None
    unlabelled: Source | None = None

    def __init__(
        self,
        images: UInt8[np.ndarray, "N H W C"] | ArrayFile,
        labels: Shaped[np.ndarray, " N"] | None,
        name: str,
        black: float = 0.0,
        white: float = 255.0,
    ) -> None:
        self.images = images
        self.labels = labels
        self.skipped: list[Skipped] = []
        self.notes: list[str] = []
        self.name = name
        self.black, self.white = black, white
        shape: tuple[int, ...] = images.shape
        self.height, self.width, self.channels = shape[1:]

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, positions: Int[np.ndarray, " B"]) -> UInt8[np.ndarray, "B C H W"]:
        """Return the images at these positions."""
        return np.ascontiguousarray(self.images[positions].transpose(0, 3, 1, 2))

    def image_names(self) -> Sequence[str]:
        """Return the index of each image."""
        return [str(index) for index in range(len(self))]


def from_array(
    images: np.ndarray | ArrayFile,
    labels: object = None,
    name: str = "array",
    black: float | None = None,
    white: float | None = None,
) -> ArraySource:
    """Check an array of images (N, H, W) or (N, H, W, C) and make a source of it.

    uint8 values stand for themselves. Other numbers are read from `black` to `white`: by default 0 to 1 when all
    lie there, else from the smallest to the largest value.
    """
    if not isinstance(images, ArrayFile):
        images = np.asanyarray(images)
    _check_shape(images.shape, name)
    if images.dtype != np.uint8:
        if images.dtype.kind not in "fiub":
            raise InputError(f"{name}: the array holds {images.dtype}: images must be uint8 or float")
        images, black, white = _to_uint8(images, name, black, white)
    else:
        black, white = 0.0, 255.0
    if images.ndim == 3:
        images = images.with_channel() if isinstance(images, ArrayFile) else images[..., None]
    elif images.shape[-1] == 4:
        images = _on_white(images, name)
    return ArraySource(images, check_labels(labels, len(images), name), name, black, white)


def check_labels(labels: object, count: int, name: str) -> Shaped[np.ndarray, " N"] | None:
    """Check that there is one label per image, and that a table can hold it."""
    if labels is None:
        return None
    array = np.asarray(labels)
    kind = array.dtype.kind if array.ndim == 1 else "none"
    if kind == "f" and np.isfinite(array).all() and np.array_equal(array, np.round(array)):
        if np.abs(array).max(initial=0) >= 2**63:
            raise InputError(f"{name}: labels go up to {np.abs(array).max():g}: number them from 0")
        array = array.astype(np.int64)
    elif kind == "S":
        array = _words(array)
    elif kind not in ("i", "u", "b", "U"):
        raise InputError(f"{name}: labels must be one whole number or word per image, found {_unlike(array)}")
    if len(array) != count:
        raise InputError(f"{name}: {len(array)} labels for {count} images: give one label per image, in their order")
    _check_letters(array, name)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _words(labels: Shaped[np.ndarray, " N"]) -> Shaped[np.ndarray, " N"]:
    """Read labels that are bytes as text."""
    return np.array([decoded(bytes(label))[0] for label in labels.tolist()], dtype=np.str_)


def _unlike(labels: np.ndarray) -> str:
    """Return in words what given labels are instead of labels."""
    if labels.ndim != 1:
        return f"an array of shape {labels.shape}"
    if labels.dtype.kind == "f":
        return f"{labels[~np.isfinite(labels) | (labels != np.round(labels))][0]}"
    return str(labels.dtype)


def _check_letters(labels: Shaped[np.ndarray, " N"], name: str) -> None:
    """Refuse words that no file can hold: half of a character, as Windows may leave in a name."""
    if labels.dtype.kind != "U":
        return
    for place, label in enumerate(labels.tolist()):
        try:
            label.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name}: the label of image {place}, {label!a}, is not valid text: rename it") from None


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[-1] not in (1, 3, 4)):
        raise InputError(
            f"{name}: the array's shape is {shape}: images must be (N, H, W) or (N, H, W, C) with C 1, 3 or 4"
        )
    count, height, width = shape[:3]
    if count == 0:
        raise InputError(f"{name}: there are no images in it")
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(
            f"{name}: images of {height}×{width} pixels are too small: each side needs at least {SMALLEST_SIDE}"
        )


def _to_uint8(
    images: np.ndarray | ArrayFile, name: str, black: float | None, white: float | None
) -> tuple[UInt8[np.ndarray, "N ..."], float, float]:
    """Scale other numbers to 0 … 255 a chunk at a time, so that a file need not fit in memory."""
    scaled = _bytes_of(images.shape, name)
    lowest, highest = np.inf, -np.inf
    for where in _chunks(images):
        chunk = images[where]
        finite = np.isfinite(chunk)
        if not finite.all():
            first = where.start + int(np.argwhere(~finite)[0][0])
            raise InputError(f"{name}: image {first} holds NaN or infinite values: correct or leave out such images")
        lowest, highest = min(lowest, float(chunk.min())), max(highest, float(chunk.max()))
    if black is None or white is None:
        black, white = (0.0, 1.0) if lowest >= 0.0 and highest <= 1.0 else (lowest, highest)
    for where in _chunks(images):
        scaled[where] = to_bytes(images[where], black, white)
    return scaled, black, white


def _on_white(images: UInt8[np.ndarray, "N H W 4"] | ArrayFile, name: str) -> UInt8[np.ndarray, "N H W 3"]:
    """Lay transparent images on white."""
    flat = _bytes_of((*images.shape[:3], 3), name)
    for where in _chunks(images):
        chunk = images[where].astype(np.float32)
        alpha = chunk[..., 3:] / 255.0
        flat[where] = np.rint(chunk[..., :3] * alpha + 255.0 * (1 - alpha))
    return flat


def _bytes_of(shape: tuple[int, ...], name: str) -> UInt8[np.ndarray, ...]:
    """Return room for images that cannot be used as they are."""
    check_fits(math.prod(shape), name, "save them as uint8 without transparency, which is used as it is")
    return np.empty(shape, np.uint8)


def _chunks(images: np.ndarray | ArrayFile) -> Iterator[slice]:
    """Cut an array into slices of a few million numbers."""
    step = max(1, CHUNK // math.prod(images.shape[1:]))
    for start in range(0, len(images), step):
        yield slice(start, start + step)
