"""Rows of an array in a file, read on demand."""

from __future__ import annotations

import errno
import math
import os
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Int, Shaped

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would otherwise take some bytes for line ends


class ArrayFile:
    """An array in a file, whose rows are read on demand, with their axes in another order if needed.

    It is not memory-mapped: truncating a mapped file kills the process that reads it.
    """

    def __init__(
        self,
        path: Path,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        axes: tuple[int, ...] | None = None,
        advice: str = "put the whole file back",
    ) -> None:
        self.path, self.offset, self.dtype = path, offset, dtype
        self._stored, self._axes, self._advice = shape, axes or tuple(range(len(shape))), advice
        self._row = dtype.itemsize * math.prod(shape[1:])  # bytes
        self.shape = tuple(shape[axis] for axis in self._axes)
        self.ndim = len(shape)
        self._file = os.open(path, os.O_RDONLY | _BINARY)
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: slice | Int[np.ndarray, " B"]) -> Shaped[np.ndarray, "B ..."]:
        """Read some rows."""
        runs: Iterable[tuple[int, int, int]]
        if isinstance(where, slice) and where.step in (None, 1):
            first, end, _ = where.indices(len(self))
            runs, count = [(first, 0, end - first)], max(0, end - first)
        else:
            rows = np.arange(*where.indices(len(self))) if isinstance(where, slice) else np.asarray(where)
            rows = np.where(rows < 0, rows + len(self), rows)
            if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
                raise IndexError(f"there are rows 0 to {len(self) - 1}")
            runs, count = _runs(rows), len(rows)
        content = np.empty(count * self._row, np.uint8)
        room = content.data
        for first, start, stop in runs:
            self._read(room[start * self._row : stop * self._row], self.offset + first * self._row)
        return content.view(self.dtype).reshape(count, *self._stored[1:]).transpose(self._axes)

    def with_channel(self) -> ArrayFile:
        """Return the same rows with one more axis, of length 1."""
        return ArrayFile(self.path, self.offset, (*self._stored, 1), self.dtype, (*self._axes, self.ndim), self._advice)

    def _read(self, rest: memoryview, offset: int) -> None:
        while rest:
            count = self._read_some(rest, offset)
            if count == 0:
                raise OSError(errno.EIO, f"was cut short while it was in use; {self._advice}", str(self.path))
            rest, offset = rest[count:], offset + count

    def _read_some(self, rest: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file, [rest], offset)
        with self._lock:  # the place in the file is shared
            os.lseek(self._file, offset, os.SEEK_SET)
            content = os.read(self._file, len(rest))
        rest[: len(content)] = content
        return len(content)


def _runs(rows: Int[np.ndarray, " B"]) -> Iterable[tuple[int, int, int]]:
    """Return the rows that follow each other, to be read at once: the first of them, where they begin and end."""
    begins = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    return zip(rows[begins].tolist(), begins.tolist(), [*begins.tolist(), len(rows)][1:], strict=True)
