"""Checksums of cached images: each image is checked when it is first read."""

from __future__ import annotations

import contextlib
import errno
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8, UInt32

from propos.data.cache.builder import IMAGES
from propos.data.cache.store import discard


class Checksums:
    """The checksums of a cache's images, and which of them were found right."""

    def __init__(self, folder: Path, checksums: UInt32[np.ndarray, " N"]) -> None:
        self._folder, self._checksums = folder, checksums
        self._right: Bool[np.ndarray, " N"] = np.zeros(len(checksums), dtype=bool)

    def check(self, position: int, pixels: UInt8[np.ndarray, " *pixels"]) -> None:
        """Refuse an image that is not what was kept, and take its cache away, so that it is made again."""
        if self._right[position]:
            return
        if zlib.crc32(pixels.data) != self._checksums[position]:
            with contextlib.suppress(OSError):  # a cache one may only read stays
                discard(self._folder)
            why = "has changed on the disk since it was cached; the cache is rebuilt by the next run"
            raise OSError(errno.EIO, why, str(self._folder / IMAGES))
        self._right[position] = True

    def check_all(self, positions: Iterable[int], images: UInt8[np.ndarray, "B ..."]) -> None:
        """Do so with several."""
        for position, pixels in zip(positions, images, strict=True):
            self.check(position, pixels)
