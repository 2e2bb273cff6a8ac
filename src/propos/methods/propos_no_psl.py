"""ProPos without prototype scattering (an ablation of the paper)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Term
from propos.methods.parts import byol_parts
from propos.objectives import Alignment


def propos_no_psl(config: Config) -> Method:
    """ProPos without scattering: each image with noisy neighbours of its other view, no prototypes."""
    return Method(
        parts=byol_parts(config),
        terms=(Term("psa", Alignment(), weight=1.0),),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        predictor_rate=config.train.predictor_rate,
    )
