"""One image file, and one that is skipped with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

DAMAGED = "damaged or cut short"
EMPTY = "empty file"
TOO_MANY_PIXELS = "more than 200 million pixels"
TOO_MANY_BYTES = "takes more than 512 MiB to decode"
TOO_MUCH_TEXT = "a PNG with more than 64 MiB of text, or 1 MiB of compressed text"


@dataclass(frozen=True)
class Entry:
    """One image file, or one image in a zip archive."""

    name: str  # relative to the root, with forward slashes, escaped (see names.py)
    path: Path  # of the file, or of the archive
    size: int  # bytes
    mtime_ns: int
    member: str | None = None  # what the archive calls it
    label: str | None = None  # from a CSV
    kind: str = ""  # JPEG, PNG, …, by content
    digest: bytes = b""  # of the first and last bytes of a file; the checksum in an archive
    width: int = 0  # as seen, after the camera's rotation
    height: int = 0


@dataclass(frozen=True)
class Skipped:
    """A file that is not used, and why."""

    path: str  # relative to the root, escaped
    reason: str


class Unreadable(Exception):  # noqa: N818 - not an error of the program: the file is skipped with this reason
    """An image cannot be read; the text is the reason."""


def reason_for(error: Exception) -> str:
    """Put an error met while reading an image in a few words."""
    if isinstance(error, Unreadable):
        return str(error)
    if isinstance(error, Image.DecompressionBombError):
        return TOO_MANY_PIXELS
    if isinstance(error, ValueError) and "MAX_TEXT_" in str(error):  # Pillow's limits
        return TOO_MUCH_TEXT
    if isinstance(error, MemoryError):
        return "too large for the memory"
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return error.strerror.lower()
    return DAMAGED
