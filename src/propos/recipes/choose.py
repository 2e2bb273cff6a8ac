"""Which recipe suits a source on a device."""

from __future__ import annotations

from propos.data import UnopenedSource
from propos.recipes.table import PAPER

TINY_SIDE = 16
SMALL_SIDE = 64


def choose_recipe(unopened: UnopenedSource, device: str) -> tuple[str, str]:
    """Return the name of a recipe and why it was chosen, in words.

    A published set has the paper's recipe of its name, which is a GPU's work; on a CPU it gets a small one.
    """
    own = unopened.published if unopened.published in PAPER else None
    kind = "greyscale" if unopened.channels == 1 else "colour"
    images = f"{unopened.images:,} {kind} images of {unopened.height}×{unopened.width} on {device}"
    if own is not None and device != "cpu":
        return own, f"{own} on {device}: {_row(own)}"
    if own is not None:
        images += f"; the paper's for {own} is a GPU's work (--recipe {own})"
    return _for_kind(unopened, device), images


def _for_kind(unopened: UnopenedSource, device: str) -> str:
    """Return the recipe for images of this size and colour."""
    side = max(unopened.height, unopened.width)
    if side > SMALL_SIDE:
        return "photos" if device == "cpu" else "paper-96"
    if unopened.channels == 1:
        return "digits" if side <= TINY_SIDE else "small-grey"
    return "small-colour" if device == "cpu" else "paper-32"


def _row(name: str) -> str:
    """Return where in the paper a recipe is from, as its description says: table 2 and the like."""
    return (PAPER[name].__doc__ or "").partition(", ")[2].partition(":")[0]
