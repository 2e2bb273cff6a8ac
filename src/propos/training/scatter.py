"""A map of the images of an E-step in the two directions that separate its clusters most."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, UInt8

POINTS = 5_000  # at most, evenly spaced
SIDE, EDGE, DOT = 600, 8, 1  # pixels: of the map, free at its edges, and around a dot's centre
# The page's colours of clusters (web/src/palette.ts).
COLOURS = ("cc6677", "332288", "c4a82c", "117733", "5ab3e0", "882255", "44aa99", "8a8a22", "aa4499", "777777")
PALETTE = np.array([list(bytes.fromhex(colour)) for colour in COLOURS], dtype=np.uint8)


def directions(
    prototypes: Float[np.ndarray, "K D"], earlier: Float[np.ndarray, "2 D"] | None
) -> Float[np.ndarray, "2 D"] | None:
    """Return the two main directions of the prototypes, turned as near to earlier ones as possible; None below two."""
    found: Float[np.ndarray, "2 D"] = np.linalg.svd(prototypes - prototypes.mean(axis=0), full_matrices=False)[2][:2]
    if len(found) < 2:
        return None
    if earlier is None:
        return found
    left, _, right = np.linalg.svd(found @ earlier.T)
    turned: Float[np.ndarray, "2 D"] = (left @ right).T @ found
    return turned


def scatter(
    embeddings: Float[np.ndarray, "n D"], labels: Int[np.ndarray, " n"], axes: Float[np.ndarray, "2 D"]
) -> UInt8[np.ndarray, "H W 3"]:
    """Draw a dot for each embedding, in its cluster's colour."""
    shown = labels >= 0
    places = embeddings[shown] @ axes.T
    drawn = np.full((SIDE, SIDE, 3), 255, dtype=np.uint8)
    if not len(places):
        return drawn
    low, size = places.min(axis=0), max(float(np.ptp(places, axis=0).max()), 1e-9)
    pixels = EDGE + ((places - low) / size * (SIDE - 2 * EDGE - 1)).astype(int)
    colours = PALETTE[labels[shown] % len(PALETTE)]
    for down in range(-DOT, DOT + 1):
        for right in range(-DOT, DOT + 1):
            drawn[SIDE - 1 - pixels[:, 1] + down, pixels[:, 0] + right] = colours
    return drawn
