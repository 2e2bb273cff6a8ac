"""Which recipe suits a source on a device."""

from __future__ import annotations

from propos.data import UnopenedSource

TINY_SIDE = 16
SMALL_SIDE = 64


def choose_recipe(unopened: UnopenedSource, device: str) -> tuple[str, str]:
    """Return the name of a recipe and why it was chosen, in words."""
    side = max(unopened.height, unopened.width)
    kind = "greyscale" if unopened.channels == 1 else "colour"
    images = f"{unopened.images:,} {kind} images of {unopened.height}×{unopened.width} on {device}"
    if side > SMALL_SIDE:
        return ("photos" if device == "cpu" else "paper-96"), images
    if unopened.channels == 1:
        return ("digits" if side <= TINY_SIDE else "small-grey"), images
    return ("small-colour" if device == "cpu" else "paper-32"), images
