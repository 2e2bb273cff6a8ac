"""SimSiam: alignment without a moving average; stop-gradient and a predictor keep it from collapse."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.networks import Head, Parts
from propos.objectives import NegativeCosine


def simsiam(config: Config) -> Method:
    """Align each image with its other view under stop-gradient; the predictor narrows to a quarter of the width.

    The projector has two layers on small images and three on others, with batch norm on its output too.
    """
    width, outer = config.network.hidden, config.network.dimension
    hidden = (width,) if config.network.stem == "small" else (width, width)
    parts = Parts(
        projector=Head((*hidden, outer), norm_last=True),
        predictor=Head((max(1, outer // 4), outer)),
        predictor_starts_small=False,
        target="stop-gradient",
    )
    train = Stage(terms=(Term("cosine", NegativeCosine()),), predictor_constant=True)
    return Method(parts, (train,), embeds="online")
