"""ProPos: prototype scattering and positive sampling (Eq. 15)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, feeding, prototype_queue
from propos.objectives import Alignment, PrototypeScattering


def propos(config: Config) -> Method:
    """Align each image with noisy neighbours of its other view; scatter the clusters once they mean something."""
    train = Stage(
        terms=(
            Term("psa", Alignment()),
            Term("psl", PrototypeScattering(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
        **feeding(config),
    )
    return Method(byol_parts(config), (train,))
