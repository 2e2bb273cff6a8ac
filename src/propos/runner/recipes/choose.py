"""Which recipe suits a source on a device."""

from __future__ import annotations

from propos.data import UnopenedSource, looks_photographic, sample
from propos.runner.recipes.table import PAPER

TINY_SIDE = 16
SMALL_SIDE = 64
LEAST_SEEN = 16  # pixels of an image from which a pretrained network makes more of it than of noise
ASKED, ASKED_AT = 256, 32  # images, and their side, that are asked whether the mirror makes others of them
NETWORK = "efficientnet-lite0"


def choose_recipe(unopened: UnopenedSource, device: str, pretrained: bool = False) -> tuple[str, str]:
    """Return the name of a recipe and why it was chosen, in words.

    A published set has the paper's recipe of its name, which is a GPU's work; on a CPU it gets a small one. With
    `pretrained`, one's own images in colour and grey photographs start from a pretrained network if one is installed.
    """
    own = unopened.published if unopened.published in PAPER else None
    kind = "greyscale" if unopened.channels == 1 else "colour"
    images = f"{kind} images of {unopened.height}×{unopened.width} on {device}"
    if own is not None and device != "cpu":
        return own, f"{own} on {device}: {_row(own)}"
    if own is not None:
        images += f"; the paper's for {own} is a GPU's work (--recipe {own})"
    name = _for_kind(unopened, device)
    side = max(unopened.height, unopened.width)
    may_be_seen = side >= LEAST_SEEN if unopened.channels == 3 else side > TINY_SIDE
    if not pretrained or not may_be_seen or unopened.published is not None:
        return name, images
    return _seen(unopened, name, images)


def _seen(unopened: UnopenedSource, otherwise: str, images: str) -> tuple[str, str]:
    """Take the pretrained start for images in colour and grey photographs; grey characters are learnt better anew."""
    from propos.networks import EXTRA, PRETRAINED, installed  # torch, which a list of recipes does without

    if unopened.channels == 1 and (not looks_photographic(unopened) or _others_in_the_mirror(unopened)):
        return otherwise, f"{images}, which do not look like photographs: nothing pretrained is used"
    if installed(NETWORK) is None:
        return otherwise, f"{images}; such images are told apart far better from a pretrained start: {EXTRA}"
    network = PRETRAINED[NETWORK]
    return "pretrained", (
        f"{images}: they are seen by {network.name}, whose weights had seen {network.seen} "
        f"(--start scratch does without; licence: {network.licence.partition(' ')[0]})"
    )


def _for_kind(unopened: UnopenedSource, device: str) -> str:
    """Return the recipe for images of this size and colour."""
    side = max(unopened.height, unopened.width)
    if side > SMALL_SIDE and (unopened.channels == 3 or looks_photographic(unopened)):
        return "photos" if device == "cpu" else "paper-96"
    if unopened.channels == 1:
        return "digits" if side <= TINY_SIDE else "small-grey"
    return "small-colour" if device == "cpu" else "paper-32"


def _others_in_the_mirror(unopened: UnopenedSource) -> bool:
    """Tell whether mirror images look foreign, as characters' do, which are learnt far better anew."""
    from propos.augment import ask_what_is_kept

    source = sample(unopened, ASKED, ASKED_AT)
    kept = None if source is None else ask_what_is_kept(source)
    return kept is not None and kept.flip == 0


def _row(name: str) -> str:
    """Return where in the paper a recipe is from, as its description says: table 2 and the like."""
    return (PAPER[name].__doc__ or "").partition(", ")[2].partition(":")[0]
