"""Thumbnails of the images, many on one sheet, and the hashes and sketches by which duplicates are found."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from propos.common.progress import Progress
from propos.data import Source, readable, upright
from propos.review.report.faults import MEASURES, measure

COLUMNS, ROWS = 32, 16
PER_SHEET = COLUMNS * ROWS
MOST_PICTURES = 100_000
SMALL = 64  # images up to this side are not resized
LOSSLESS = 16  # JPEG would blur images up to this side
JPEG_BLOCK = 8
QUALITY = 80
SKETCH = 16


@dataclass(frozen=True)
class Pictures:
    """The sheets, the position of each image on them, and hashes and sketches of the images on them."""

    side: int
    whole: bool  # thumbnails have all the pixels that were read
    pitch: int  # from one tile to the next
    files: list[str]
    tiles: int  # on all sheets, those of images that turned out unreadable included
    slot: Int[np.ndarray, " N"]  # −1: no picture
    order: Int[np.ndarray, " M"]  # the images on the sheets
    digests: list[bytes | None]  # of each of them
    sketches: Float[np.ndarray, "M S"]  # unit vectors; 0 for none
    measures: Float[np.ndarray, "M F"]  # of faults (`faults.py`); NaN for none


def picture_order(
    featured: Sequence[int], cluster: Int[np.ndarray, " N"], distance: Float[np.ndarray, " N"]
) -> Int[np.ndarray, " M"]:
    """Return the images in the order of their tiles: first those that the overview shows, then cluster by cluster.

    Of more than 100,000 images, the featured ones and an even selection of the others have pictures.
    """
    first = np.array(list(dict.fromkeys(featured)), dtype=np.int64)
    rest = np.setdiff1d(np.lexsort((distance, cluster)), first, assume_unique=True)
    room = max(0, MOST_PICTURES - len(first))
    if len(rest) > room:
        rest = rest[np.linspace(0, len(rest) - 1, room).round().astype(np.int64)]
    return np.concatenate([first, rest])


def draw_pictures(source: Source, order: Int[np.ndarray, " M"], folder: Path, progress: Progress) -> Pictures:
    """Write the sheets into a folder."""
    side = thumbnail_side(source, len(order))
    pitch = side if side <= LOSSLESS else JPEG_BLOCK * math.ceil(side / JPEG_BLOCK)
    slot = np.full(len(source), -1, np.int32)
    slot[order] = np.arange(len(order))
    digests: list[bytes | None] = []
    sketches = np.zeros((len(order), min(side, SKETCH) ** 2), np.float32)
    measures = np.full((len(order), len(MEASURES)), np.nan, np.float32)
    files = []
    for start in range(0, len(order), PER_SHEET):
        positions = order[start : start + PER_SHEET]
        images = source.batch(positions)
        tiles = [thumbnail(source, image, int(at), side) for image, at in zip(images, positions, strict=True)]
        whole = readable(source, positions)
        slot[positions[~whole]] = -1
        digests += [
            hashlib.blake2b(image.tobytes(), digest_size=12).digest() if good else None
            for image, good in zip(images, whole, strict=True)
        ]
        sketches[start : start + len(tiles)] = [_sketch(tile) for tile in tiles]
        measures[start : start + len(tiles)][whole] = [
            measure(upright(source, image, int(at)))
            for image, at, good in zip(images, positions, whole, strict=True)
            if good
        ]
        files.append(_write_sheet(tiles, pitch, folder, start // PER_SHEET))
        progress(start + len(positions), len(order))
    whole_images = side == min(source.height, source.width)
    return Pictures(side, whole_images, pitch, files, len(order), slot, order, digests, sketches, measures)


def sketches_of(source: Source, positions: Int[np.ndarray, " M"], side: int) -> Float[np.ndarray, "M S"]:
    """Return the sketches of images that are not on the sheets; 0 for those that cannot be read."""
    images = source.batch(positions)
    tiles = [thumbnail(source, image, int(at), side) for image, at in zip(images, positions, strict=True)]
    sketches: Float[np.ndarray, "M S"] = np.stack([_sketch(tile) for tile in tiles])
    sketches[~readable(source, positions)] = 0.0
    return sketches


def thumbnail_side(source: Source, count: int) -> int:
    """Return the side of a thumbnail: small images as they are, large ones smaller the more there are."""
    own = min(source.height, source.width)
    if own <= SMALL:
        return own
    return min(own, 128 if count <= 5_000 else 64 if count <= 20_000 else 48)


def thumbnail(source: Source, image: UInt8[np.ndarray, "C H W"], position: int, side: int) -> Image.Image:
    """Return an image as its thumbnail."""
    aspect = source.width / source.height if source.aspects is None else float(source.aspects[position])
    if source.frames is not None:
        image = upright(source, image, position)
        aspect = image.shape[2] / image.shape[1]
    return _middle(image, aspect, side)


def _middle(image: UInt8[np.ndarray, "C H W"], aspect: float, side: int) -> Image.Image:
    """Crop the middle square of an image in its true shape, and resize it."""
    channels, height, width = image.shape
    picture = Image.fromarray(image[0] if channels == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
    wide, high = width * min(1.0, 1 / aspect), height * min(1.0, aspect)
    box = ((width - wide) / 2, (height - high) / 2, (width + wide) / 2, (height + high) / 2)
    if (side, side) == (width, height) and aspect == 1:
        return picture
    return picture.resize((side, side), Image.Resampling.BICUBIC, box=box)


def _sketch(tile: Image.Image) -> Float[np.ndarray, " S"]:
    """Return a small grey picture as a unit vector free of brightness and contrast; 0 without contrast."""
    side = min(tile.width, SKETCH)
    grey = np.asarray(tile.convert("L").resize((side, side), Image.Resampling.BOX), np.float32).ravel()
    centred = grey - grey.mean()
    norm = float(np.linalg.norm(centred))
    return centred / norm if norm > side else np.zeros_like(centred)  # a standard deviation of 1 of 255


def _write_sheet(tiles: list[Image.Image], pitch: int, folder: Path, number: int) -> str:
    rows = math.ceil(len(tiles) / COLUMNS)
    sheet = Image.new(tiles[0].mode, (pitch * COLUMNS, pitch * rows))
    for place, tile in enumerate(tiles):
        sheet.paste(_padded(tile, pitch), (pitch * (place % COLUMNS), pitch * (place // COLUMNS)))
    name = f"sheet-{number:04d}.{'png' if pitch <= LOSSLESS else 'jpg'}"
    if pitch <= LOSSLESS:
        sheet.save(folder / name, "PNG", compress_level=9)
    else:
        sheet.save(folder / name, "JPEG", quality=QUALITY, subsampling=0, optimize=True)
    return name


def _padded(tile: Image.Image, pitch: int) -> Image.Image:
    """Pad to whole JPEG blocks with the colours of the edge, so that neighbouring tiles do not bleed in."""
    if tile.width == pitch:
        return tile
    pixels = np.asarray(tile)
    more = pitch - tile.width
    return Image.fromarray(np.pad(pixels, ((0, more), (0, more)) + ((0, 0),) * (pixels.ndim - 2), mode="edge"))
