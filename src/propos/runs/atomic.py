"""Atomic writes: readers see the old file or the complete new one, even after a crash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np


def write_atomically(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write to a temporary file in the same folder, flush it to disk, then rename it over the target."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as a .npy file."""
    write_atomically(path, lambda file: np.save(_Writer(file), array, allow_pickle=False))


class _Writer:
    """A wrapper that hides a file from numpy, whose own writing of files loses the reason of a failure."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename survives a power cut."""
    # Windows opens no folders and some network file systems flush none; the rename itself is still atomic.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
