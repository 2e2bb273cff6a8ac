"""Which recipe suits a source on a device."""

from __future__ import annotations

from propos.data import Found

WRITTEN_SIDE = 16
SMALL_SIDE = 64


def choose_recipe(found: Found, device: str) -> tuple[str, str]:
    """Return the name of a recipe and why it was chosen, in words."""
    side = max(found.height, found.width)
    kind = "greyscale" if found.channels == 1 else "colour"
    images = f"{found.images:,} {kind} images of {found.height}×{found.width} on {device}"
    if side > SMALL_SIDE:
        return ("photos" if device == "cpu" else "paper-96"), images
    if found.channels == 1:
        return _grey(side, found.written), images
    return ("small-colour" if device == "cpu" else "paper-32"), images


def _grey(side: int, written: bool) -> str:
    if side <= WRITTEN_SIDE:
        return "digits"
    return "written" if written else "small-grey"
