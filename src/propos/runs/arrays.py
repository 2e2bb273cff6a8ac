"""Arrays of a run folder: float32 in .npy files, whose header is checked against the file before anything is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from propos.common.errors import InputError
from propos.runs.rows import ArrayFile

MAGIC = b"\x93NUMPY"
UNIT = 1.01  # a unit vector's length, and what rounding may add to it
BLOCK = 65_536  # rows that are checked at once


class Vectors(Protocol):
    """Rows of vectors: an array, or a file whose rows are read on demand."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and their length."""
        ...

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def __getitem__(self, where: slice | Int[np.ndarray, " n"], /) -> Float[np.ndarray, "n D"]:
        """Return some rows."""
        ...


class VectorFile:
    """Unit vectors in a .npy file; rows are read on demand, and checked each time."""

    def __init__(self, path: Path) -> None:
        self.path, self.shape = path, array_shape(path)
        values = math.prod(self.shape) * np.dtype(np.float32).itemsize
        self._rows = ArrayFile(path, path.stat().st_size - values, self.shape, np.dtype(np.float32))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: slice | Int[np.ndarray, " n"], /) -> Float[np.ndarray, "n D"]:
        """Return some rows."""
        rows = self._rows[where]
        _check_finite(rows, self.path)
        _check_lengths(rows, self.path)
        return rows


def array_shape(path: Path) -> tuple[int, ...]:
    """Return the shape of a float32 .npy file, after checking that the file is complete."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise InputError(f"{path}: cannot be read: not a .npy file")
            file.seek(0)
            major, _ = np.lib.format.read_magic(file)
            if major != 1:
                raise InputError(f"{path}: cannot be read: unsupported version of the .npy format")
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
            there = path.stat().st_size - file.tell()
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # numpy evaluates the header as Python, which may go wrong in any way
        raise InputError(f"{path}: cannot be read: its header is damaged ({type(error).__name__})") from None
    if dtype != np.float32:
        raise InputError(f"{path}: holds {dtype}, not float32")
    if by_column and len(shape) > 1:
        raise InputError(f"{path}: is stored by column (Fortran order): save it by row")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != there:
        raise InputError(f"{path}: {there:,} bytes do not match the shape {shape} in its header")
    return shape


def check_shape(path: Path, expected: tuple[int | None, ...], names: str) -> tuple[int, ...]:
    """Return an array's shape, or refuse one of other dimensions than expected (None: any but 0)."""
    shape = array_shape(path)
    fits = len(shape) == len(expected) and all(
        length > 0 and wanted in (None, length) for length, wanted in zip(shape, expected, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in expected)
        raise InputError(f"{path}: holds an array of shape {shape}, not ({wanted}): {names}")
    return shape


def read_unit_vectors(path: Path) -> Float[np.ndarray, "N D"]:
    """Read an array whose rows are unit vectors, or 0."""
    array = read_finite(path)
    for start in range(0, len(array), BLOCK):
        _check_lengths(array[start : start + BLOCK], path)
    return array


def read_finite(path: Path) -> Float[np.ndarray, ...]:
    """Read an array that holds neither NaN nor infinity."""
    array_shape(path)
    try:
        array: Float[np.ndarray, ...] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    for start in range(0, len(array), BLOCK):
        _check_finite(array[start : start + BLOCK], path)
    return array


def _check_finite(rows: Float[np.ndarray, "n ..."], path: Path) -> None:
    if not np.isfinite(rows).all():
        raise InputError(f"{path}: holds NaN or infinity")


def _check_lengths(rows: Float[np.ndarray, "n D"], path: Path) -> None:
    if not (np.einsum("nd,nd->n", rows, rows) <= UNIT**2).all():
        raise InputError(f"{path}: rows are longer than 1: not embeddings")
