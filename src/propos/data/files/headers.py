"""Size, colours, time and camera of an image, from its header alone."""

from __future__ import annotations

import datetime
import zlib
from typing import Any

from PIL import ExifTags, ImageFile

from propos.data.files.content import open_image
from propos.data.files.entry import Entry

GREY_MODES = ("1", "L", "LA", "La", "F")


def orientation(image: ImageFile.ImageFile) -> int:
    """Return how the camera was held, 1 to 8 as EXIF counts; 1, upright, when the note is missing or damaged."""
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # EXIF is full of nonsense; the pixels are still good
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def read_header(entry: Entry) -> tuple[int, int, int, int, bool]:
    """Return when an image was taken and by which camera, its width and height as seen, and whether it is grey."""
    with open_image(entry) as image:
        width, height = image.size
        # A PNG without EXIF in its header would be decoded to look for it; TIFF applies the orientation itself.
        noted = entry.kind != "TIFF" and (entry.kind != "PNG" or "exif" in image.info)
        if noted and orientation(image) >= 5:
            width, height = height, width
        taken, camera = _origin(image) if noted else (0, 0)
        return taken, camera, width, height, _is_grey(image)


def _origin(image: ImageFile.ImageFile) -> tuple[int, int]:
    """Return the time in milliseconds since 1970, by the camera's clock, and a checksum of the camera; 0: unknown."""
    try:
        exif = image.getexif()
        if ExifTags.Base.ExifOffset not in exif:
            return 0, 0
        notes = exif.get_ifd(ExifTags.IFD.Exif)
        return _milliseconds(notes), _camera(exif, notes)
    except Exception:  # EXIF is full of nonsense; the pixels are still good
        return 0, 0


def _milliseconds(notes: dict[int, Any]) -> int:
    text = str(notes[ExifTags.Base.DateTimeOriginal]).strip("\0 ")
    time = datetime.datetime.strptime(text, "%Y:%m:%d %H:%M:%S").replace(tzinfo=datetime.UTC)
    part = str(notes.get(ExifTags.Base.SubsecTimeOriginal, "")).strip("\0 ")
    return int(time.timestamp()) * 1_000 + (int(f"{part:0<3.3}") if part.isdecimal() and part.isascii() else 0)


def _camera(exif: Any, notes: dict[int, Any]) -> int:
    tags = ExifTags.Base
    named = [exif.get(tags.Make), exif.get(tags.Model), notes.get(tags.BodySerialNumber)]
    return zlib.crc32(repr(named).encode()) if any(named) else 0


def _is_grey(image: ImageFile.ImageFile) -> bool:
    if image.mode in ("P", "PA") and image.palette is not None:
        colours = bytes(image.palette.palette)
        step = len(image.palette.mode)
        return image.palette.rawmode in (None, "RGB") and colours[0::step] == colours[1::step] == colours[2::step]
    return image.mode in GREY_MODES or image.mode.startswith("I")
