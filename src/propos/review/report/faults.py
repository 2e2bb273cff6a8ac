"""Images with faults that people look for: blurred, dark, bright, black, flat, grey, of odd shape, tiny.

Each is a cheap measure of the decoded image. An image has a fault if it is far from the others of its set (3.5 robust
standard deviations beyond the median) and beyond a fixed bound, so that a set of night photographs has no dark ones and
a set without faults none at all. An image that is merely unlike the others is no fault: it is an outlier.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from propos.data import Files, Source
from propos.review.report.robust import scores

FAR = 3.5  # robust standard deviations
SIDE = 256  # of the middle that is measured
MEASURES = ("light", "dimmest", "sharpness", "equal", "colour")
DARK, BRIGHT, BLACK = 0.35, 0.65, 0.06  # of white: the lightest, and the dimmest, twentieth of the pixels
BLURRED = -1.0  # powers of ten below the median sharpness
FLAT = 0.5  # share of pixels that equal their neighbour, as in screenshots and documents
GREY = 0.01  # of white: the mean difference between the largest and the smallest channel
LONG = 2.5  # width over height, or the reverse
TINY = 0.25  # of the median shorter side
KINDS = ("black", "dark", "bright", "blurred", "flat", "grey", "aspect", "tiny")
SMALL = 32  # pixels: in smaller images neither sharpness nor equal neighbours tell a fault
EPS = 1e-4


def measure(image: UInt8[np.ndarray, "C H W"]) -> Float[np.ndarray, " F"]:
    """Measure an image: how light its lightest and dimmest parts are, its sharpness, how much is flat, its colour.

    Sharpness is the variance of the Laplacian compared with that of the image, as a power of ten.
    """
    top, left = ((size - min(size, SIDE)) // 2 for size in image.shape[1:])
    middle = image[:, top : top + SIDE, left : left + SIDE]
    grey = middle.mean(axis=0, dtype=np.float32) / 255
    dimmest, light = np.percentile(grey, [5, 95])
    colour = (middle.max(axis=0) - middle.min(axis=0)).mean() / 255
    if min(grey.shape) < 3:
        return np.array([light, dimmest, 0.0, 0.0, colour], np.float32)
    inner = grey[1:-1, 1:-1]
    laplacian = 4 * inner - grey[:-2, 1:-1] - grey[2:, 1:-1] - grey[1:-1, :-2] - grey[1:-1, 2:]
    sharpness = np.log10((laplacian.var() + EPS**2) / (grey.var() + EPS))
    equal = (middle[:, :, 1:] == middle[:, :, :-1]).all(axis=0).mean()
    return np.array([light, dimmest, sharpness, equal, colour], np.float32)


def find_faults(
    source: Source, order: Int[np.ndarray, " M"], measures: Float[np.ndarray, "M F"], kept: Bool[np.ndarray, " N"]
) -> dict[str, list[int]]:
    """Return the images with each fault, the worst first; images that are not kept have none.

    A fault hides those that follow from it: a black image is not dark, and a tiny one not blurred.
    """
    use = kept[order] & np.isfinite(measures).all(axis=1)
    rows, (light, dimmest, sharpness, equal, colour) = order[use], measures[use].T
    if len(rows) == 0:
        return {}
    wide, short = _shapes(source, rows)
    found = {
        "black": (light < BLACK) & (scores(-light) > FAR),
        "dark": (light < DARK) & (scores(-light) > FAR),
        "bright": (dimmest > BRIGHT) & (scores(dimmest) > FAR),
        "flat": (equal > FLAT) & (scores(equal) > FAR),
        "blurred": (sharpness < np.median(sharpness) + BLURRED) & (scores(-sharpness) > FAR),
        "grey": (colour < GREY) & (scores(-np.log10(colour + EPS)) > FAR),
        "aspect": (wide > np.log(LONG)) & (scores(wide) > FAR),
        "tiny": short < TINY * np.median(short),
    }
    for hidden in ("dark", "blurred", "flat"):
        found[hidden] &= ~found["black"]
    if min(source.height, source.width) < SMALL:
        found["flat"][:] = found["blurred"][:] = False
    found["grey"] &= ~found["black"] & ~found["flat"]
    found["blurred"] &= ~found["flat"] & ~found["tiny"]
    worst = {"black": light, "dark": light, "bright": -dimmest, "flat": -equal, "blurred": sharpness}
    worst |= {"grey": colour, "aspect": -wide, "tiny": short}
    return {kind: _sorted(rows, found[kind], worst[kind]) for kind in KINDS if found[kind].any()}


def _shapes(source: Source, rows: Int[np.ndarray, " M"]) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
    """Return how far each image is from a square, as a logarithm, and its shorter side; of arrays all are alike."""
    if not isinstance(source, Files):
        return np.zeros(len(rows)), np.ones(len(rows))
    facts = source.entries.facts[rows]
    width, height = facts["width"].astype(np.float64), facts["height"].astype(np.float64)
    known = (width > 0) & (height > 0)
    wide = np.zeros(len(rows))
    wide[known] = np.abs(np.log(width[known] / height[known]))
    short = np.minimum(width, height)
    short[~known] = np.inf
    return wide, short


def _sorted(rows: Int[np.ndarray, " M"], which: Bool[np.ndarray, " M"], value: Float[np.ndarray, " M"]) -> list[int]:
    """Return some rows by ascending value."""
    listed: list[int] = rows[which][np.argsort(value[which], kind="stable")].tolist()
    return listed
