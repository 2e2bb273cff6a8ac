"""From what a person names to a source."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from propos.data.arrays import ArraySource, from_array
from propos.data.source import Source
from propos.errors import InputError

BUILT_IN = ("digits",)
IMAGE_KEYS = ("images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "Y", "targets", "target", "arr_1")


def open_source(what: str | np.ndarray, black: float | None = None, white: float | None = None) -> Source:
    """Open a built-in set by name, a .npy or .npz file by path, or an array."""
    if isinstance(what, np.ndarray):
        return from_array(what, black=black, white=white)
    if what in BUILT_IN:
        return _digits()
    path = Path(what)
    if path.is_dir():
        raise InputError(f"{what}: is a folder; give a .npy or .npz file of images, or one of: {', '.join(BUILT_IN)}")
    if not path.exists():
        raise InputError(f"{what}: no such file; give a .npy or .npz file, or one of: {', '.join(BUILT_IN)}")
    if path.suffix.lower() not in (".npy", ".npz"):
        raise InputError(f"{what}: files of images must end in .npy or .npz")
    images, labels = _load(path)
    return from_array(images, labels, name=path.name, black=black, white=white)


def _digits() -> ArraySource:
    """Return the 1,797 handwritten digits of 8 × 8 pixels that ship with scikit-learn."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return from_array(digits.images, digits.target, name="digits", black=0.0, white=16.0)


def _load(path: Path) -> tuple[np.ndarray, Any]:
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False), None
        with np.load(path, allow_pickle=False) as archive:
            return _pick(archive, path)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: cannot be read as a numpy file: {error}") from None


def _pick(archive: Any, path: Path) -> tuple[np.ndarray, Any]:
    """Find the images and, if there, the labels among an archive's arrays."""
    image_key = next((key for key in IMAGE_KEYS if key in archive.files and archive[key].ndim >= 3), None)
    if image_key is None:
        raise InputError(f"{path}: found arrays {', '.join(archive.files) or 'none'}: name the images 'images'")
    images = archive[image_key]
    label_key = next((key for key in LABEL_KEYS if key in archive.files and archive[key].ndim == 1), None)
    return images, None if label_key is None else archive[label_key]
