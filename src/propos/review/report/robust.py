"""Robust standard scores: how far values are from the median, in units of the median absolute deviation."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

MAD_TO_STD = 1.4826  # of a normal distribution


def scores(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return each value's distance from the median in robust standard deviations; without any spread, 0 or ±∞."""
    away = values - np.median(values)
    spread = MAD_TO_STD * np.median(np.abs(away))
    if spread > 0:
        score: Float[np.ndarray, " N"] = away / spread
        return score
    return np.where(away == 0, 0.0, np.copysign(np.inf, away))
