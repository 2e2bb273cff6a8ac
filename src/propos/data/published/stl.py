"""STL-10's binary files: bytes image by image, channel by channel, column by column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from propos.common.errors import InputError
from propos.data.arrays import ArraySource
from propos.data.published.layout import missing, unopened_array
from propos.data.unopened import UnopenedSource
from propos.runs.rows import ArrayFile

SIDE = 96
UNLABELLED = "unlabelled"
_IMAGE = 3 * SIDE * SIDE


def find_stl(name: str, folder: Path, splits: tuple[str, ...], classes: tuple[str, ...]) -> UnopenedSource:
    """Look at the files of these splits; the labelled ones bring the unlabelled images along."""
    if splits == (UNLABELLED,):
        pixels = open_images(name, folder / "unlabeled_X.bin")
        unopened = unopened_array(len(pixels), 3, SIDE, SIDE, lambda: ArraySource(pixels, None, name))
        return UnopenedSource(unopened.images, 3, SIDE, SIDE, unopened.open, labelled=False)
    parts = [open_images(name, folder / f"{split}_X.bin") for split in splits]
    labels = np.concatenate([_labels(name, folder / f"{split}_y.bin", len(classes)) for split in splits])
    images = sum(len(part) for part in parts)
    if len(labels) != images:
        raise InputError(f"{folder}: holds {images:,} images and {len(labels):,} labels: fetch it again")

    def read() -> ArraySource:
        pixels = parts[0] if len(parts) == 1 else np.concatenate([part[:] for part in parts])
        source = ArraySource(pixels, np.array(classes)[labels], name)
        if (folder / "unlabeled_X.bin").exists():
            rest = open_images(name, folder / "unlabeled_X.bin")
            source.unlabelled = ArraySource(rest, None, f"{name}:{UNLABELLED}")
        return source

    return unopened_array(images, 3, SIDE, SIDE, read)


def open_images(name: str, path: Path) -> ArrayFile:
    """Open a file of images, channels last; rows are read on demand."""
    if not path.is_file():
        raise missing(name, path)
    if path.stat().st_size == 0 or path.stat().st_size % _IMAGE:
        raise InputError(f"{path}: its size is not a multiple of {SIDE}×{SIDE} images: fetch it again")
    images = path.stat().st_size // _IMAGE
    return ArrayFile(path, 0, (images, 3, SIDE, SIDE), np.dtype(np.uint8), axes=(0, 3, 2, 1))


def _labels(name: str, path: Path, classes: int) -> UInt8[np.ndarray, " N"]:
    if not path.is_file():
        raise missing(name, path)
    numbers = np.fromfile(path, np.uint8)
    if numbers.size and not 1 <= numbers.min() <= numbers.max() <= classes:
        raise InputError(f"{path}: holds classes other than 1 to {classes}: fetch it again")
    return numbers - np.uint8(1)
