"""Whether grey images look like photographs, from the pixels of a few of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt8

from propos.data.arrays import ArraySource
from propos.data.decoding.worker import decode_all
from propos.data.source import Source
from propos.data.unopened import UnopenedSource

SAMPLE = 24
SIDE = 128
MOST_FLAT = 0.3  # of neighbouring pixels that are exactly alike; things cut out on black have 0.5 (docs/pretrained.md)


def looks_photographic(unopened: UnopenedSource) -> bool:
    """Tell photographs from drawings, charts and screens: these have wide areas of one colour."""
    source = sample(unopened, SAMPLE, SIDE)
    if source is None:
        return False
    images = source.batch(spread(len(source), SAMPLE)).transpose(0, 2, 3, 1)
    return float(np.median([flatness(image) for image in images])) <= MOST_FLAT


def flatness(image: UInt8[np.ndarray, "H W C"]) -> float:
    """Return the share of pixels that are exactly like their right neighbour."""
    return float((image[:, 1:] == image[:, :-1]).all(axis=2).mean())


def sample(unopened: UnopenedSource, count: int, side: int) -> Source | None:
    """Return a few images, spread over all of them, as far as they can be read; of arrays all, which are at hand.

    Nothing where none can be read.
    """
    if unopened.headers is None:
        return unopened.open(side)
    entries = unopened.headers.scan.images
    found = decode_all([entries[position] for position in spread(len(entries), count)], side, unopened.channels)
    return ArraySource(np.stack(found.images), None, "a sample") if found.images else None


def spread(images: int, count: int) -> Int[np.ndarray, " n"]:
    """Return the positions of some images, spread over all of them."""
    return np.linspace(0, images - 1, min(count, images)).round().astype(np.int64)
