"""One image file to a small array of bytes: a square, or the image in its own shape."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image

from propos.data.decoding.levels import to_bytes
from propos.data.files.content import open_image
from propos.data.files.entry import Entry, Unreadable
from propos.data.files.headers import orientation

VERSION = 2  # of decoding; caches of another version are rebuilt
STRIP = 256  # rows of a large image that are worked on at a time, so that no second copy of it is needed
_SIXTEEN_BITS = 65_535
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def kept_shape(width: int, height: int, side: int) -> tuple[int, int]:
    """Return the rows and columns in which an image is kept in its shape: lying, and never enlarged.

    Its shorter side is `side`, unless the longer would then be more than twice that.
    """
    short, long = sorted((width, height))
    if short > side:
        short, long = side, side * long // short
    if long > 2 * side:
        short, long = max(1, 2 * side * short // long), 2 * side
    return short, long


def decode(
    entry: Entry, side: int, channels: int, draft: bool = True, shaped: bool = False, middle: int = 0
) -> tuple[UInt8[np.ndarray, "H W C"], float]:
    """Return an image, upright, on white, resized to a square, and its true width/height.

    With `shaped` it has the shape given by `kept_shape`; a portrait image is transposed. With `middle` too, it is the
    square of this side in the middle of that, upright, and the rest is not resized: its pixels differ by one level at
    most. A JPEG is decoded at half, a quarter or an eighth of its size if that is still large enough (`draft`). Any
    fault of the file is raised, truncation included. Call it from one thread, within `without_warnings`.
    """
    with open_image(entry, whole=True) as image:
        size: tuple[int, int] = image.size
        box = None
        if draft and entry.kind == "JPEG":
            drafted = image.draft("L" if channels == 1 else None, _resized(size, side, shaped))
            box = drafted[1] if drafted else None
        image.load()
        if box is None:
            size = image.size  # loading a TIFF applies its orientation
        turn, flat, whole = orientation(image), _flat(image, channels), _resized(size, side, shaped)
        middle = middle if min(whole) == side else 0  # its header promised a larger image
        if middle and turn not in _UPRIGHT:
            small = _resized_middle(flat, box or (0, 0, *flat.size), whole, middle)
        else:
            small = flat.resize(whole, Image.Resampling.BICUBIC, box=box)
    width, height = size if turn < 5 else size[::-1]
    if turn in _UPRIGHT:  # it is small: cheaper turned last
        small = small.transpose(_UPRIGHT[turn])
        small = small.crop(_middle(small.size, middle)) if middle else small
    if shaped and height > width and not middle:
        small = small.transpose(Image.Transpose.TRANSPOSE)
    return np.array(small, dtype=np.uint8).reshape(small.height, small.width, channels), width / height


def _resized(size: tuple[int, int], side: int, shaped: bool) -> tuple[int, int]:
    """Return the width and height to which an image of this size is resized, as it stands in its file."""
    if not shaped:
        return side, side
    rows, columns = kept_shape(*size, side)
    return (columns, rows) if size[0] >= size[1] else (rows, columns)


def _middle(size: tuple[int, int], side: int) -> tuple[int, int, int, int]:
    """Return the square in the middle of an image of this width and height, at whole pixels."""
    left, top = (round((edge - side) / 2) for edge in size)
    return left, top, left + side, top + side


def _resized_middle(image: Image.Image, box: tuple[float, ...], size: tuple[int, int], side: int) -> Image.Image:
    """Resize a part of an image to a size, but only the square in the middle of that.

    It is done across and then down, as Pillow resizes the whole: of a part it may take the other order, which rounds
    the other way.
    """
    across, down = (box[2] - box[0]) / size[0], (box[3] - box[1]) / size[1]
    square = _middle(size, side)
    left, top = box[0] + square[0] * across, box[1] + square[1] * down
    right, bottom = box[0] + square[2] * across, box[1] + square[3] * down
    first, last = max(0, int(top - 3 * down) - 1), min(image.height, int(bottom + 3 * down) + 1)  # a bicubic reaches 2
    rows = image.crop((0, first, image.width, last))
    narrow = rows.resize((side, rows.height), Image.Resampling.BICUBIC, box=(left, 0, right, rows.height))
    return narrow.resize((side, side), Image.Resampling.BICUBIC, box=(0, top - first, side, bottom - first))


def _flat(image: Image.Image, channels: int) -> Image.Image:
    """Return the image in grey or RGB, laid on white where it is transparent."""
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray(_deep_to_bytes(np.asarray(image)))
    elif image.mode == "LAB":
        image = _from_lab(image)
    elif image.mode == "La":
        image = image.convert("LA")
    mode = "L" if channels == 1 else "RGB"
    if image.has_transparency_data:
        return _on_white(image, mode)
    return image if image.mode == mode else image.convert(mode)


def _on_white(image: Image.Image, mode: str) -> Image.Image:
    """Lay an image on white, strip by strip: whole, it would take three copies of four bytes a pixel."""
    flat = Image.new(mode, image.size)
    for top in range(0, image.height, STRIP):
        box = (0, top, image.width, min(top + STRIP, image.height))
        seen = image.crop(box).convert("RGBA")
        flat.paste(Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert(mode), box)
    return flat


def _deep_to_bytes(values: Shaped[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H W"]:
    """Scale deep pixels to 0 … 255.

    16-bit values span all 16 bits. Others span the first of 0 … 1 (floats), 0 … 255 and 0 … 65,535 that holds them
    all, or else run from the image's smallest to its largest value.
    """
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        raise Unreadable("holds NaN or infinite values")
    black, white = low, high
    if values.dtype.itemsize == 2 and values.dtype.kind == "u":
        black, white = 0.0, float(_SIXTEEN_BITS)
    elif low >= 0:
        spans = (1.0, 255.0, float(_SIXTEEN_BITS)) if values.dtype.kind == "f" else (255.0, float(_SIXTEEN_BITS))
        black, white = next(((0.0, span) for span in spans if high <= span), (low, high))
    scaled = np.empty(values.shape, np.uint8)
    for start in range(0, len(values), STRIP):
        scaled[start : start + STRIP] = to_bytes(values[start : start + STRIP], black, white)
    return scaled


def _from_lab(image: Image.Image) -> Image.Image:
    from PIL import ImageCms

    converted = ImageCms.applyTransform(image, _lab_to_rgb())
    assert converted is not None
    return converted


@functools.cache
def _lab_to_rgb() -> Any:
    from PIL import ImageCms

    return ImageCms.buildTransform(ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB")
