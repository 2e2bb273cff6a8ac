"""ProPos whose prototypes are only pushed apart (the ablation without alignment)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, prototype_queue
from propos.objectives import Alignment, PrototypeUniformity


def propos_uniformity_only(config: Config) -> Method:
    """ProPos that pushes prototypes apart but does not hold them to their twins."""
    train = Stage(
        terms=(
            Term("psa", Alignment()),
            Term("psl", PrototypeUniformity(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
    )
    return Method(byol_parts(config), (train,))
