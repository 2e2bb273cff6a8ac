"""Whether images look like photographs, from the pixels of a few of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from propos.data.decoding.worker import decode_all
from propos.data.unopened import UnopenedSource

SAMPLE = 24
SIDE = 128
MOST_FLAT = 0.6  # of neighbouring pixels that are exactly alike; docs/pretrained.md has what was measured


def looks_photographic(unopened: UnopenedSource) -> bool:
    """Tell photographs from drawings, charts and screens: these have wide areas of one colour."""
    images = _some(unopened)
    return bool(len(images)) and float(np.median([flatness(image) for image in images])) <= MOST_FLAT


def flatness(image: UInt8[np.ndarray, "H W C"]) -> float:
    """Return the share of pixels that are exactly like their right neighbour."""
    return float((image[:, 1:] == image[:, :-1]).all(axis=2).mean())


def _some(unopened: UnopenedSource) -> list[UInt8[np.ndarray, "H W C"]]:
    """Read a few images, spread over all of them; those that cannot be read are left out."""
    positions = np.linspace(0, unopened.images - 1, min(SAMPLE, unopened.images)).round().astype(np.int64)
    if unopened.headers is not None:
        entries = unopened.headers.scan.images
        return decode_all([entries[position] for position in positions], SIDE, 3).images
    source = unopened.open(SIDE)
    return list(source.batch(positions).transpose(0, 2, 3, 1))
