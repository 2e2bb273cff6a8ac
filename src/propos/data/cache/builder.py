"""Build a cache: pixels are appended to one file, with a journal of its content.

A journal line is written after its pixels and contains their checksum. After a kill, a full disk or a power cut, the
lines that match the pixels tell where to resume.
"""

from __future__ import annotations

import io
import json
import math
import os
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from propos.data.decoding.worker import Decoded
from propos.runs.atomic import sync_folder, write_array, write_atomically
from propos.runs.rows import ArrayFile

IMAGES, ASPECTS, META, JOURNAL = "images.npy", "aspects.npy", "meta.json", "journal.jsonl"
CHECKSUMS = "checksums.npy"  # of each image's pixels
FRAMES = "frames.npy"  # rows and columns of images that are kept in their shape, one behind the other
MARK = "CACHEDIR.TAG"  # a convention: backups skip the folder; it also marks our caches
_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55\n# Decoded images kept by propos (propos cache clean).\n"
_HEADER = 128


class CacheBuilder:
    """The unfinished folder of a cache; one process at a time writes it."""

    def __init__(self, folder: Path, shape: tuple[int, int, int, int], source: str, shaped: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        mark(folder)
        self.folder, self.shape, self.shaped = folder, shape, shaped
        self.seen = 0  # images tried
        self.pixels = 0  # bytes of the cached images
        self.aspects: list[float] = []
        self.frames: list[tuple[int, int]] = []  # where images are kept in their shape
        self.checksums: list[int] = []
        self.failed: dict[int, str] = {}
        self._first = {"source": source, "shape": list(shape)} | ({"shaped": True} if shaped else {})
        self._images = _open(folder / IMAGES)
        self._journal = _open(folder / JOURNAL)
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    def append(self, decoded: Decoded) -> None:
        """Add the next images."""
        _write(self._images, decoded.pixels.data)
        line = {
            "checksum": zlib.crc32(decoded.pixels.data),
            "aspects": decoded.aspects,
            "failed": list(decoded.failed.items()),
        } | ({"frames": decoded.frames} if self.shaped else {})
        _write(self._journal, json.dumps(line).encode() + b"\n")
        self._count(line, decoded.pixels.data)

    def finish(self, complete: Path, meta: dict[str, Any]) -> None:
        """Flush everything to the disk, and put the folder where it is looked for."""
        self._images.seek(0)
        _write(self._images, _header((self.pixels,) if self.shaped else (len(self.aspects), *self.shape[1:])))
        os.fsync(self._images.fileno())
        write_array(self.folder / ASPECTS, np.array(self.aspects))
        write_array(self.folder / CHECKSUMS, np.array(self.checksums, dtype=np.uint32))
        if self.shaped:
            write_array(self.folder / FRAMES, np.array(self.frames, dtype=np.int32).reshape(-1, 2))
        write_atomically(self.folder / META, json.dumps(meta).encode())
        self.close()
        self.folder.rename(complete)
        sync_folder(complete.parent)
        (complete / JOURNAL).unlink()

    def close(self) -> None:
        """Let go of the files."""
        self._images.close()
        self._journal.close()

    def _resume(self) -> None:
        """Keep what the journal vouches for and cut off the rest."""
        lines = iter(self._journal.read().splitlines(keepends=True))
        kept, pixels = 0, _HEADER
        if _parsed(next(lines, b"")) == self._first:
            kept = len(_line(self._first))
            self._images.seek(_HEADER)
            for text in lines:
                line = _outcome(text, self.shaped)
                size = sum(self._sizes(line))
                content = self._images.read(size) if size else b""
                if line is None or len(content) != size or zlib.crc32(content) != line["checksum"]:
                    break
                self._count(line, memoryview(content))
                kept, pixels = kept + len(text), pixels + size
        self._images.truncate(pixels)
        self._images.seek(0)
        _write(self._images, _header(self.shape))
        self._images.seek(pixels)
        self._journal.truncate(kept)
        self._journal.seek(kept)
        if kept == 0:
            _write(self._journal, _line(self._first))

    def _sizes(self, line: dict[str, Any] | None) -> list[int]:
        """Return the number of bytes of each image in a journal line."""
        if line is None:
            return []
        if not self.shaped:
            return [math.prod(self.shape[1:])] * len(line["aspects"])
        return [self.shape[3] * rows * columns for rows, columns in line["frames"]]

    def _count(self, line: dict[str, Any], pixels: memoryview) -> None:
        self.frames += [(rows, columns) for rows, columns in line.get("frames", ())]
        start = 0
        for size in self._sizes(line):
            self.checksums.append(zlib.crc32(pixels[start : start + size]))
            start += size
        self.pixels += start
        self.failed.update({self.seen + position: reason for position, reason in line["failed"]})
        self.aspects += line["aspects"]
        self.seen += len(line["aspects"]) + len(line["failed"])


def mark(folder: Path) -> None:
    """Mark a folder as one of our caches."""
    if not is_marked(folder):
        write_atomically(folder / MARK, _SIGNATURE)


def is_marked(folder: Path) -> bool:
    """Return whether a folder is one of our caches."""
    try:
        if not (folder / MARK).is_file():  # a pipe would be waited for
            return False
        with (folder / MARK).open("rb") as file:
            return file.read(len(_SIGNATURE) + 1) == _SIGNATURE
    except OSError:
        return False


def opened_images(folder: Path, shape: tuple[int, ...]) -> ArrayFile | None:
    """Return the pixels of a finished cache; nothing where they are not of this shape, or not all there."""
    path = folder / IMAGES
    with path.open("rb") as file:
        sound = file.read(_HEADER) == _header(shape) and path.stat().st_size == _HEADER + math.prod(shape)
    advice = "the cache is rebuilt by the next run"
    return ArrayFile(path, _HEADER, shape, np.dtype(np.uint8), advice=advice) if sound else None


def progress_of(folder: Path) -> tuple[str, int, int]:
    """Return an unfinished cache's source, and how many images it holds and has tried."""
    source, held, tried = "", 0, 0
    try:
        journal = (folder / JOURNAL).read_bytes() if (folder / JOURNAL).is_file() else b""
    except OSError:
        return source, held, tried
    lines = journal.splitlines(keepends=True)
    source = str((_parsed(lines[0]) or {}).get("source", "")) if lines else ""
    for line in (_outcome(text) for text in lines[1:]):
        if line is not None:
            held += len(line["aspects"])
            tried += len(line["aspects"]) + len(line["failed"])
    return source, held, tried


def _open(path: Path) -> IO[bytes]:
    """Open a file for reading and writing without a buffer, so that a full disk is met where it is written to."""
    if path.exists() and not path.is_file():
        path.unlink()  # a pipe or a device in the place of what we wrote
    path.touch()
    return path.open("r+b", buffering=0)


def _write(file: IO[bytes], content: bytes | memoryview) -> None:
    rest = memoryview(content).cast("B") if len(content) else memoryview(b"")
    while rest:
        rest = rest[file.write(rest) :]


def _header(shape: tuple[int, ...]) -> bytes:
    """Return the head of a .npy file."""
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, {"descr": "|u1", "fortran_order": False, "shape": shape})
    assert len(text.getvalue()) == _HEADER
    return text.getvalue()


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _parsed(text: bytes) -> dict[str, Any] | None:
    """Read a line of the journal; nothing when it was cut short or is damaged."""
    try:
        line = json.loads(text) if text.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _outcome(text: bytes, shaped: bool = False) -> dict[str, Any] | None:
    """Parse a journal line: the decoded images of a batch, the failed ones, and frames if images keep their shape."""
    line = _parsed(text) or {}
    aspects, failed, frames = line.get("aspects"), line.get("failed"), line.get("frames")
    if not isinstance(aspects, list) or not all(type(aspect) is float and aspect > 0 for aspect in aspects):
        return None
    if shaped and not (isinstance(frames, list) and len(frames) == len(aspects) and all(map(_is_frame, frames))):
        return None
    return line if is_failures(failed, int) and type(line.get("checksum")) is int else None


def _is_frame(frame: object) -> bool:
    return isinstance(frame, list) and len(frame) == 2 and all(type(side) is int and side > 0 for side in frame)


def is_failures(listed: object, kind: type) -> bool:
    """Return whether these are pairs of an image key of this type and the reason why it could not be decoded."""
    return isinstance(listed, list) and all(
        isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is kind and type(pair[1]) is str for pair in listed
    )
