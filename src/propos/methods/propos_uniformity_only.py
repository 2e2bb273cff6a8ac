"""ProPos whose prototypes are only pushed apart (the ablation without alignment)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Term
from propos.methods.parts import byol_parts, prototype_queue
from propos.objectives import Alignment, PrototypeUniformity


def propos_uniformity_only(config: Config) -> Method:
    """ProPos that pushes prototypes apart but does not hold them to their twins."""
    return Method(
        parts=byol_parts(config),
        terms=(
            Term("psa", Alignment(), weight=1.0),
            Term("psl", PrototypeUniformity(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
    )
