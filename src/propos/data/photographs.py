"""Telling photographs from drawings by the pixels of a sample."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from propos.data.sample import SIDE, Sample
from propos.data.source import evenly_spaced

COUNT = 24
MOST_FLAT = 0.3  # of neighbouring pixels that are exactly alike; things cut out on black have 0.5 (docs/pretrained.md)


def looks_photographic(sample: Sample) -> bool:
    """Tell photographs from drawings, charts and screens: these have wide areas of one colour."""
    source = sample.source(COUNT, SIDE)
    if source is None:
        return False
    images = source.batch(evenly_spaced(len(source), COUNT)).transpose(0, 2, 3, 1)
    return float(np.median([flatness(image) for image in images])) <= MOST_FLAT


def flatness(image: UInt8[np.ndarray, "H W C"]) -> float:
    """Return the share of pixels that are exactly like their right neighbour."""
    return float((image[:, 1:] == image[:, :-1]).all(axis=2).mean())
