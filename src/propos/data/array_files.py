"""Arrays in .npy and .npz files, checked against what their headers promise before anything is read."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from propos.common.errors import InputError
from propos.data.memory import check_fits
from propos.runs.rows import ArrayFile

IMAGE_KEYS = ("images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "Y", "targets", "target", "arr_1")


@dataclass(frozen=True)
class _Header:
    """The header of an array file, and its length."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[np.generic]
    length: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_arrays(path: Path) -> tuple[ArrayFile | np.ndarray, np.ndarray | None]:
    """Return the images of a .npy or .npz file, and the labels if there are any."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: is not an ordinary file; give a .npy or .npz file of images")
    try:
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                return _read_archive(path)
            file.seek(0)
            return _open_array(file, path), None
    except MemoryError:
        raise InputError(f"{path}: does not fit into memory") from None
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: cannot be read as a numpy file: {error}") from None


def _open_array(file: IO[bytes], path: Path) -> ArrayFile | np.ndarray:
    header = _read_header(file, os.fstat(file.fileno()).st_size, str(path))
    if not header.fortran:
        return ArrayFile(path, header.length, header.shape, header.dtype)
    # Image by image such a file is scattered over its whole length.
    check_fits(header.bytes, str(path), "save it in C order, which is read in parts")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def _read_archive(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Find the images and, if there, the labels among an archive's arrays."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        images = _find(archive, members, IMAGE_KEYS, path, at_least=3)
        if images is None:
            raise InputError(f"{path}: found arrays {', '.join(members) or 'none'}: name the images 'images'")
        return images, _find(archive, members, LABEL_KEYS, path, at_least=1, at_most=1)


def _find(
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    keys: Sequence[str],
    path: Path,
    at_least: int,
    at_most: int = 99,
) -> np.ndarray | None:
    """Read the first of these arrays with this number of axes."""
    for member in (members[key] for key in keys if key in members):
        name = f"{path}: {member.filename}"
        with archive.open(member) as file:
            header = _read_header(file, member.file_size, name)
        if at_least <= len(header.shape) <= at_most:
            check_fits(header.bytes, name, "save the images as a .npy file, which is read in parts")
            with archive.open(member) as file:
                return np.lib.format.read_array(file, allow_pickle=False)
    return None


def _read_header(file: IO[bytes], size: int, name: str) -> _Header:
    """Read an array's header; raise InputError if the array is incomplete or not numeric."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(file)
            # The third version differs from the second in the letters of its names alone.
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except OSError:
        raise
    except Exception:  # a damaged header may make the parser raise anything; its advice does not apply
        raise InputError(f"{name}: cannot be read as a numpy file: its header is damaged") from None
    if dtype.hasobject:
        raise InputError(f"{name}: cannot be read: it holds Python objects; save the images as an array of numbers")
    header = _Header(shape, fortran and len(shape) > 1, dtype, file.tell())
    if min(shape, default=0) < 0 or header.length + header.bytes > size:
        wanted = f"{header.bytes:,} bytes for an array of {shape}, but has {size - header.length:,}"
        raise InputError(f"{name}: cannot be read, it is cut short: it needs {wanted}")
    return header
