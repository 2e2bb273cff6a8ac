"""Numbers of any kind to the 256 levels of a byte."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped, UInt8


def to_bytes(values: Shaped[np.ndarray, ...], black: float, white: float) -> UInt8[np.ndarray, ...]:
    """Scale values from `black` to `white` to 0 … 255, and clip what lies beyond; where both are one, all are 0.

    Subtracted in double precision, numbers far from zero that differ little keep their levels.
    """
    if not white > black:
        return np.zeros(values.shape, np.uint8)
    half = 0.5 if np.isinf(white - black) else 1.0  # the span of the largest numbers is beyond the largest number
    with np.errstate(over="ignore"):  # what lies far beyond white is clipped
        share = (values.astype(np.float64) * half - black * half) / (white * half - black * half)
        levels: UInt8[np.ndarray, ...] = np.clip(np.rint(share * 255.0), 0, 255).astype(np.uint8)
    return levels
