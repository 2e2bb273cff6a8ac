"""Sets of labelled images that defaults are tried on: published ones, cut down, and two kinds made here.

`PROPOS_DATA` is the folder of data sets. Letters are rendered from the fonts of this machine, so they differ from one
machine to another; textures are the same everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image, ImageDraw, ImageFont

from propos.data import find_source
from propos.data.arrays import ArraySource

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TEN_LETTERS = "AEFGKMQRSY"
FONTS = ("/usr/share/fonts", "/Library/Fonts", "C:/Windows/Fonts")
UNLIKE = 200  # of 765: how far two colours are apart at least
SYMBOLS = ("symbol", "dingbat", "emoji", "math", "music", "icon", "d050000l", "standardsymbols", "mono-e")


def published(name: str, count: int) -> ArraySource:
    """Return the first images of a published set."""
    source = find_source(name, data=os.environ.get("PROPOS_DATA")).open(64)
    assert source.labels is not None
    images = source.batch(np.arange(min(count, len(source)))).transpose(0, 2, 3, 1)
    return ArraySource(np.ascontiguousarray(images), source.labels[: len(images)], name, source.black, source.white)


def ten_of_tiny_imagenet() -> ArraySource:
    """Return the images of every twentieth class of Tiny ImageNet."""
    source = find_source("tiny-imagenet", data=os.environ.get("PROPOS_DATA")).open(64)
    assert source.labels is not None
    kept = np.flatnonzero(np.isin(source.labels, np.unique(source.labels)[::20]))
    images = np.ascontiguousarray(source.batch(kept).transpose(0, 2, 3, 1))
    return ArraySource(images, source.labels[kept], "tiny-imagenet's ten classes")


def letters(kinds: str, count: int, side: int = 28, seed: int = 0) -> ArraySource:
    """Render letters white on black in the machine's fonts, each a little shifted, scaled and turned."""
    draw, fonts = np.random.default_rng(seed), _fonts()
    images, labels = np.zeros((count, side, side, 1), np.uint8), np.empty(count, "U1")
    for row in range(count):
        labels[row] = kinds[row % len(kinds)]
        font = ImageFont.truetype(fonts[draw.integers(len(fonts))], int(4 * side * draw.uniform(0.6, 0.85)))
        large = Image.new("L", (4 * side, 4 * side))
        place = tuple(2 * side + draw.integers(-side // 4, side // 4 + 1, 2))
        ImageDraw.Draw(large).text(place, labels[row], 255, font, anchor="mm")
        turned = large.rotate(draw.normal(0, 5), Image.Resampling.BILINEAR)
        images[row, ..., 0] = turned.resize((side, side), Image.Resampling.BOX)
    return ArraySource(images, labels, f"{len(kinds)} letters")


def _fonts() -> list[str]:
    found = [path for place in FONTS for path in sorted(Path(place).rglob("*")) if path.suffix in (".ttf", ".otf")]
    usable = [str(path) for path in found if not any(word in path.name.lower() for word in SYMBOLS)]
    return [path for path in usable if _draws_letters(path)]


def _draws_letters(path: str) -> bool:
    """Return whether a font has all letters, each different."""
    try:
        font = ImageFont.truetype(path, 24)
    except OSError:
        return False
    return len({bytes(font.getmask(letter)) for letter in LETTERS}) == len(LETTERS)


def textures(count: int, side: int = 32, kinds: int = 10, seed: int = 0) -> ArraySource:
    """Return grey textures: noise of a kind's own scale, direction and stretch, rotated and lit at random."""
    draw = np.random.default_rng(seed)
    across, down = np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side))
    images, labels = np.empty((count, side, side, 1), np.uint8), np.arange(count) % kinds
    for row, kind in enumerate(labels):
        scale, stretch = 0.06 + 0.07 * (kind % 5), 1.0 if kind < 5 else 4.0
        angle = draw.uniform(0, np.pi)
        along = np.cos(angle) * across + np.sin(angle) * down
        over = np.cos(angle) * down - np.sin(angle) * across
        ring = np.exp(-(((np.hypot(along, stretch * over) - scale) / 0.03) ** 2))
        noise = np.fft.ifft2(np.fft.fft2(draw.standard_normal((side, side))) * ring).real
        noise = noise / noise.std() * draw.uniform(30, 60) + draw.uniform(100, 150)
        images[row, ..., 0] = noise.clip(0, 255)
    return ArraySource(images, labels, "textures")


def coloured(grey: ArraySource, seed: int = 0) -> ArraySource:
    """Paint what is light in each grey image in one colour and what is dark in another, drawn for it and not alike."""
    draw = np.random.default_rng(seed)
    light = grey.batch(np.arange(len(grey))).transpose(0, 2, 3, 1) / 255.0
    images = np.empty((*light.shape[:3], 3), np.uint8)
    for row, shares in enumerate(light):
        one, other = draw.integers(0, 256, (2, 3))
        while np.abs(one - other).sum() < UNLIKE:
            one, other = draw.integers(0, 256, (2, 3))
        images[row] = (shares * one + (1 - shares) * other).round()
    return ArraySource(images, grey.labels, f"{grey.name}, coloured")


SETS: dict[str, Callable[[], ArraySource]] = {
    "digits": lambda: published("digits", 1797),
    "fashion-mnist 3,000": lambda: published("fashion-mnist", 3000),
    "fashion-mnist 10,000": lambda: published("fashion-mnist", 10_000),
    "10 letters": lambda: letters(TEN_LETTERS, 3000),
    "26 letters": lambda: letters(LETTERS, 5200),
    "10 letters, coloured": lambda: coloured(letters(TEN_LETTERS, 1500, 32)),
    "fashion-mnist 1,000, coloured": lambda: coloured(published("fashion-mnist", 1000)),
    "textures": lambda: textures(2000),
    "cifar-10 2,000": lambda: published("cifar-10", 2000),
    "cifar-10 10,000": lambda: published("cifar-10", 10_000),
    "tiny-imagenet, ten classes": ten_of_tiny_imagenet,
}


def sheet(images: UInt8[np.ndarray, "N H W C"], labels: Shaped[np.ndarray, " N"], columns: int = 12) -> Image.Image:
    """Return a picture with a row of images for each label, to see what a set is like."""
    rows = [images[labels == label][:columns] for label in np.unique(labels)[:12]]
    tiled = np.concatenate([np.concatenate(list(row), axis=1) for row in rows if len(row) == columns])
    return Image.fromarray(tiled[..., 0] if tiled.shape[-1] == 1 else tiled)
