"""ProPos whose prototypes are only aligned (the ablation without uniformity)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, prototype_queue
from propos.objectives import Alignment, PrototypeAlignment


def propos_alignment_only(config: Config) -> Method:
    """ProPos that holds prototypes to their twins but does not push them apart."""
    train = Stage(
        terms=(
            Term("psa", Alignment()),
            Term("psl", PrototypeAlignment(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
    )
    return Method(byol_parts(config), (train,))
