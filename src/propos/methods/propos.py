"""ProPos: prototype scattering and positive sampling (Eq. 15); where the settings say so, with a contrast of images."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, feeding, prototype_queue
from propos.objectives import Alignment, NtXent, PrototypeScattering


def propos(config: Config) -> Method:
    """Align each image with noisy neighbours of its other view; scatter the clusters once they mean something.

    Recipes for small grey images also tell each image from the others of its batch, which short runs learn far sooner
    (docs/results.md, "Telling images apart").
    """
    contrast = Term("contrast", NtXent(config.contrast.temperature), config.contrast.weight)
    train = Stage(
        terms=(
            Term("psa", Alignment()),
            Term("psl", PrototypeScattering(config.psl.temperature), config.psl.weight, starts=config.psl_start),
            *([contrast] if config.contrast.weight else []),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
        **feeding(config),
    )
    return Method(byol_parts(config), (train,))
