"""ProPos whose prototypes are only aligned (the ablation without uniformity)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Term
from propos.methods.parts import byol_parts, prototype_queue
from propos.objectives import Alignment, PrototypeAlignment


def propos_alignment_only(config: Config) -> Method:
    """ProPos that holds prototypes to their twins but does not push them apart."""
    return Method(
        parts=byol_parts(config),
        terms=(
            Term("psa", Alignment(), weight=1.0),
            Term("psl", PrototypeAlignment(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
    )
