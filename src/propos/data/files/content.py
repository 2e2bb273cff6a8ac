"""The bytes of an image: what kind they are, where they come from, and opening them without decoding."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import io
import os
import threading
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from PIL import ImageFile

from propos.data.files.entry import DAMAGED, TOO_MANY_BYTES, TOO_MANY_PIXELS, Entry, Unreadable

MOST_PIXELS = 200_000_000
MOST_BYTES = 1 << 29  # that decoding one image may take
LARGEST_MEMBER = 1 << 30  # of an archive, decompressed
EDGE = 4_096  # bytes at either end of a file that stand for its content
HEIC = "HEIC"
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1")
# The reader of each kind is called directly: Image.open would try every format it knows, and warn of large images.
_READERS = {
    "JPEG": ("PIL.JpegImagePlugin", "JpegImageFile"),
    "PNG": ("PIL.PngImagePlugin", "PngImageFile"),
    "WebP": ("PIL.WebPImagePlugin", "WebPImageFile"),
    "BMP": ("PIL.BmpImagePlugin", "BmpImageFile"),
    "TIFF": ("PIL.TiffImagePlugin", "TiffImageFile"),
    "GIF": ("PIL.GifImagePlugin", "GifImageFile"),
    HEIC: ("pillow_heif", "HeifImageFile"),
}
KINDS = ("", *_READERS)  # by number; 0: not an image
_HELD = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2}  # bytes a pixel; all others are held as four, RGB too
_READING = {"WebP": 8, HEIC: 4}  # bytes per pixel that reading takes in addition to the image
NOT_AN_IMAGE = f"not a {', '.join(kind for kind in _READERS if kind != HEIC)} or {HEIC} image"
AN_ARCHIVE = "an archive: unpack it, or give it by itself"
NEEDS_HEIC = "a HEIC image: needs pip install 'propos[heic]'"
_archive_lock = threading.Lock()


def is_archive(name: str, head: bytes) -> bool:
    """Return whether a file is a .zip archive by its name too; many document formats are zip files inside."""
    return name.lower().endswith(".zip") and head.startswith(b"PK")


def kind_of(head: bytes) -> str | None:
    """Return the kind of an image by its first bytes, never by its name."""
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WebP"
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return "BMP"
    if head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return "TIFF"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS:
        return HEIC
    return None


@functools.cache
def reads_heic() -> bool:
    """Return whether the extra that reads HEIC is installed."""
    return importlib.util.find_spec("pillow_heif") is not None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep Pillow's remarks on odd files from the person; enter from one thread, around all the others' work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def open_bytes(entry: Entry) -> Iterator[IO[bytes]]:
    """Open an image's bytes for reading."""
    if entry.member is None:
        with entry.path.open("rb") as file:
            yield file
        return
    with _archive_lock, _archive(entry.path, entry.path.stat().st_mtime_ns, os.getpid()).open(entry.member) as file:
        yield file


@contextmanager
def open_image(entry: Entry, whole: bool = False) -> Iterator[ImageFile.ImageFile]:
    """Open an image without decoding it; `whole` reads an archive's member first, to be decoded freely after."""
    with open_bytes(entry) as stream:
        if whole and entry.member is not None:
            stream = io.BytesIO(stream.read(LARGEST_MEMBER))
        image: ImageFile.ImageFile = _reader(entry.kind)(stream)
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise Unreadable(TOO_MANY_PIXELS)
        if width < 1 or height < 1:
            raise Unreadable(DAMAGED)
        if width * height * _bytes_a_pixel(image, entry.kind) > MOST_BYTES:
            raise Unreadable(TOO_MANY_BYTES)
        yield image


def edges(entry: Entry) -> tuple[bytes, bytes]:
    """Return the first bytes of an image, and a digest of its first and last ones.

    With name, size and time of change the digest makes an image's identity. Up to 8 KiB it covers the whole file; of
    a longer one it also notices most changes made with the time of change put back, at the price of one page read.
    """
    with open_bytes(entry) as file:
        head = file.read(EDGE)
        if entry.digest:
            return head, entry.digest
        file.seek(max(EDGE, entry.size - EDGE))
        return head, hashlib.blake2b(head + file.read(EDGE), digest_size=16).digest()


def content_hash(entry: Entry) -> bytes:
    """Return a hash of an image's whole content."""
    digest = hashlib.blake2b(digest_size=16)
    with open_bytes(entry) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


def _bytes_a_pixel(image: ImageFile.ImageFile, kind: str) -> int:
    """Return the approximate peak bytes per pixel while an image is read and converted to greyscale or RGB."""
    if kind == "JPEG":
        # Large ones are decoded at an eighth of their size; but a progressive one is first held whole.
        return 2 * len(image.getbands()) if image.info.get("progressive") else 0
    held = _HELD.get(image.mode, 4)
    made = 0 if image.mode in ("L", "RGB") and not image.has_transparency_data else 4
    return held + made + (_in_strips(image) if kind == "TIFF" else _READING.get(kind, 0))


def _in_strips(image: Any) -> int:
    """Return what reading a TIFF takes: its strips or tiles are unpacked whole, and one may be the whole image."""
    rows = image.tag_v2.get(278) or image.tag_v2.get(323)
    return 0 if isinstance(rows, int) and 8 * rows < image.height else 4


@functools.cache
def _reader(kind: str) -> Any:
    module, name = _READERS[kind]
    return getattr(importlib.import_module(module), name)


@functools.lru_cache(maxsize=2)
def _archive(path: Path, mtime_ns: int, process: int) -> zipfile.ZipFile:
    """Keep an archive open, for its table of contents is long; a forked process must not share the file's offset."""
    return zipfile.ZipFile(path)
