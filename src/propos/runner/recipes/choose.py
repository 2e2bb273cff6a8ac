"""Choosing the recipe that suits a source and a device."""

from __future__ import annotations

from propos.data import Sample, looks_photographic
from propos.runner.recipes.table import PAPER

TINY_SIDE = 16
SMALL_SIDE = 64
LEAST_SIDE = 16  # pixels; of smaller images a pretrained network's features are noise
MIRRORED, MIRRORED_SIDE = 256, 32  # number of images, and their side, for the test of mirror images
NETWORK = "efficientnet-lite0"


def choose_recipe(sample: Sample, device: str, pretrained: bool = False) -> tuple[str, str]:
    """Return the name of a recipe, and the reason for it.

    A published set has the paper's recipe of its name, which needs a GPU; on a CPU it gets a small one. With
    `pretrained`, a person's own colour images and grey photographs get a pretrained network if one is installed.
    """
    unopened = sample.unopened
    own = unopened.published if unopened.published in PAPER else None
    kind = "greyscale" if unopened.channels == 1 else "colour"
    images = f"{kind} images of {unopened.height}×{unopened.width} on {device}"
    if own is not None and device != "cpu":
        return own, f"{own} on {device}: {_row(own)}"
    if own is not None:
        images += f"; the paper's recipe for {own} needs a GPU (--recipe {own})"
    name = _for_kind(sample, device)
    side = max(unopened.height, unopened.width)
    large_enough = side >= LEAST_SIDE if unopened.channels == 3 else side > TINY_SIDE
    if not pretrained or not large_enough or unopened.published is not None:
        return name, images
    return _with_pretrained(sample, name, images)


def _with_pretrained(sample: Sample, otherwise: str, images: str) -> tuple[str, str]:
    """Choose the pretrained network for colour images and grey photographs; characters are learnt better without."""
    from propos.networks import EXTRA, PRETRAINED, installed  # torch, which a list of recipes does without

    if sample.unopened.channels == 1 and (not looks_photographic(sample) or _changed_by_mirror(sample)):
        return otherwise, f"{images}, which do not look like photographs: no pretrained network is used"
    if installed(NETWORK) is None:
        return otherwise, f"{images}; a pretrained network would give far better clusters: {EXTRA}"
    network = PRETRAINED[NETWORK]
    return "pretrained", (
        f"{images}: features of {network.name}, pretrained on {network.origin.trained_on} "
        f"(--start scratch turns it off; licence: {network.origin.licence.partition(' ')[0]})"
    )


def _for_kind(sample: Sample, device: str) -> str:
    """Return the recipe for images of this size and colour."""
    side, channels = max(sample.unopened.height, sample.unopened.width), sample.unopened.channels
    if side > SMALL_SIDE and (channels == 3 or looks_photographic(sample)):
        return "photos" if device == "cpu" else "paper-96"
    if channels == 1:
        return "digits" if side <= TINY_SIDE else "small-grey"
    return "small-colour" if device == "cpu" else "paper-32"


def _changed_by_mirror(sample: Sample) -> bool:
    """Tell whether mirror images look unlike the others: those of characters do."""
    from propos.augment import measure_invariance

    source = sample.source(MIRRORED, MIRRORED_SIDE)
    kept = None if source is None else measure_invariance(source)
    return kept is not None and kept.flip == 0


def _row(name: str) -> str:
    """Return the table of the paper that a recipe is from, as its description says."""
    return (PAPER[name].__doc__ or "").partition(", ")[2].partition(":")[0]
