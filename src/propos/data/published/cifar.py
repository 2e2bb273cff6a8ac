"""CIFAR-10 and CIFAR-100 as their authors distribute them for Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from propos.common.errors import InputError
from propos.data.arrays import ArraySource
from propos.data.published.layout import missing, unopened_array
from propos.data.published.long_tail import long_tail
from propos.data.published.pickles import read_pickle
from propos.data.unopened import UnopenedSource

SIDE = 32
CIFAR_10 = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
CIFAR_100 = {"train": ("train",), "test": ("test",)}

Arrays = tuple[UInt8[np.ndarray, "N 32 32 3"], Int[np.ndarray, " N"]]


def find_cifar(
    name: str, folder: Path, files: tuple[str, ...], key: str, classes: tuple[str, ...], tail: bool = False
) -> UnopenedSource:
    """Read batch files in order; `key` names the labels, `tail` selects a long-tailed subset."""
    parts = [read_batch(name, folder / file, key, len(classes)) for file in files]
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    if tail:
        kept = long_tail(labels, len(classes))
        images, labels = images[kept], labels[kept]
    source = ArraySource(images, np.array(classes)[labels], name)
    return unopened_array(len(source), 3, SIDE, SIDE, lambda: source)


def read_batch(name: str, path: Path, key: str, classes: int) -> Arrays:
    """Read one batch file: images, channels last, and the numbers of their classes."""
    try:
        batch = read_pickle(path)
    except FileNotFoundError:
        raise missing(name, path) from None
    pixels, labels = batch.get("data"), _numbers(batch.get(key), classes)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3 * SIDE * SIDE:
        raise InputError(f"{path}: no images of {SIDE}×{SIDE} pixels under 'data'")
    if labels is None or len(labels) != len(pixels):
        raise InputError(f"{path}: does not hold a class from 0 to {classes - 1} for each image under '{key}'")
    return pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1), labels


def _numbers(labels: Any, classes: int) -> Int[np.ndarray, " N"] | None:
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < classes for label in labels):
        return None
    return np.array(labels, dtype=np.int64)
