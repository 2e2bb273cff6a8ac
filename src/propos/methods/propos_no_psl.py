"""ProPos without prototype scattering (an ablation of the paper)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts
from propos.objectives import Alignment


def propos_no_psl(config: Config) -> Method:
    """ProPos without scattering: each image with noisy neighbours of its other view, no prototypes."""
    train = Stage(
        terms=(Term("psa", Alignment()),),
        noise=config.psa.sigma,
        noise_starts=config.psl_start,
        predictor_rate=config.train.predictor_rate,
    )
    return Method(byol_parts(config), (train,))
