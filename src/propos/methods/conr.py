"""CoNR: a stage on top of BYOL in which images foretell their neighbours (Yu et al., NeurIPS 2023)."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.errors import InputError
from propos.methods.method import Method, Stage, Term
from propos.methods.pretext import epochs_after, pretext
from propos.objectives import NeighbourAlignment

WIDE = 2  # nearest images, each itself among them, whose neighbours an image takes over
LEAST = 0.8  # of a batch that does not lie between clusters, at first
RISE = 0.25  # of the epochs (50 of 200), after which all images are kept
GENTLE = 0.45  # of an image that a view shows at least
# Of the rate, the predictor's too: a tenth of what a cosine over 1,000 epochs has left at the authors' 800th.
LATE = 0.015


def conr(config: Config) -> Method:
    """Align each image with its neighbours in the batch, re-ranked by the neighbours they share, on a trained network.

    As in its public code, but: of the images kept, the last is kept too; the rate falls along a cosine of its own, and
    the target's momentum, where it rises, rises anew. A pretext without a predictor is refused: nothing would keep such
    a network from making one of all images.
    """
    first, stages = pretext(config)
    if first.parts.predictor is None:
        name = config.pretext.method
        raise InputError(
            f"pretext.method = {name}: has no predictor to foretell neighbours with: choose byol or propos"
        )
    rise = max(1, round(RISE * epochs_after(config)))
    smallest, largest = config.views.crop_scale
    refining = Stage(
        "refining",
        terms=(Term("neighbours", NeighbourAlignment(config.neighbours.count, WIDE, LEAST, rise)),),
        share=1 - config.pretext.share,
        changes={"lr": LATE * config.train.lr, "warmup": 0, "schedule": "cosine"},
        views={"crop_scale": (min(max(smallest, GENTLE), largest), largest)},
        trains=("backbone", "projector", "predictor"),
    )
    return Method(replace(first.parts, target="moving average"), (*stages, refining))
