"""MNIST's idx files, plain or gzipped: a magic number, the size of each dimension, then bytes."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
from jaxtyping import UInt8

from propos.common.errors import InputError
from propos.data.arrays import ArraySource
from propos.data.published.layout import missing, unopened_array
from propos.data.unopened import UnopenedSource

FILES = {"train": "train", "test": "t10k"}
_LENGTH = 4
_BYTES = 8  # idx's number for unsigned bytes


def find_idx(name: str, folder: Path, splits: tuple[str, ...], classes: tuple[str, ...]) -> UnopenedSource:
    """Look at the headers of the files of these splits."""
    images = [_path(name, folder, f"{FILES[split]}-images-idx3-ubyte") for split in splits]
    labels = [_path(name, folder, f"{FILES[split]}-labels-idx1-ubyte") for split in splits]
    shapes = [_shape(path, 3) for path in images]

    def read() -> ArraySource:
        pixels = np.concatenate([read_idx(path, 3) for path in images])
        numbers = np.concatenate([read_idx(path, 1) for path in labels])
        if len(pixels) != len(numbers):
            raise InputError(f"{folder}: holds {len(pixels):,} images and {len(numbers):,} labels: fetch it again")
        return ArraySource(pixels[..., None], np.array(classes)[numbers], name)

    return unopened_array(sum(shape[0] for shape in shapes), 1, shapes[0][1], shapes[0][2], read)


def read_idx(path: Path, dimensions: int) -> UInt8[np.ndarray, ...]:
    """Read an array of bytes."""
    shape = _shape(path, dimensions)
    try:
        with _open(path) as file:
            content = file.read()[_LENGTH * (1 + dimensions) :]
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}; fetch it again") from None
    if len(content) != math.prod(shape):
        raise InputError(f"{path}: holds {len(content):,} bytes where {math.prod(shape):,} belong: fetch it again")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _shape(path: Path, dimensions: int) -> tuple[int, ...]:
    try:
        with _open(path) as file:
            head = file.read(_LENGTH * (1 + dimensions))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}; fetch it again") from None
    if head[:_LENGTH] != bytes([0, 0, _BYTES, dimensions]) or len(head) < _LENGTH * (1 + dimensions):
        raise InputError(f"{path}: is not an idx file of bytes in {dimensions} dimensions")
    return tuple(int(size) for size in np.frombuffer(head, ">u4")[1:])


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _path(name: str, folder: Path, file: str) -> Path:
    for path in (folder / file, folder / f"{file}.gz"):
        if path.is_file():
            return path
    raise missing(name, folder / f"{file}.gz")
