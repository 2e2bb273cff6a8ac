"""ProPos: prototype scattering and positive sampling (Eq. 15); where settings say so, with a contrast and a pull."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import ASKED, byol_parts, feeding, prototype_queue
from propos.objectives import Alignment, ConfidentPull, NtXent, PrototypeScattering


def propos(config: Config) -> Method:
    """Align each image with noisy neighbours of its other view; scatter the clusters once they mean something.

    Recipes for small grey images also tell each image from the others of its batch, which short runs learn far sooner,
    and pull those together at the end that their neighbours agree with (docs/results.md).
    """
    contrast = Term("contrast", NtXent(config.contrast.temperature), config.contrast.weight, ends=config.pull_start)
    pull = Term("pull", ConfidentPull(ASKED), config.pull.weight, starts=config.pull_start)
    train = Stage(
        terms=(
            Term("psa", Alignment()),
            Term("psl", PrototypeScattering(config.psl.temperature), config.psl.weight, starts=config.psl_start),
            *(term for term in (contrast, pull) if term.weight),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
        **feeding(config),
    )
    return Method(byol_parts(config), (train,))
