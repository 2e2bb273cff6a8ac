"""ProPos without positive sampling (an ablation of the paper): instance alignment stays."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, prototype_queue
from propos.objectives import Alignment, PrototypeScattering


def propos_no_psa(config: Config) -> Method:
    """ProPos without noise: each image with its other view, and the scattering of clusters."""
    train = Stage(
        terms=(
            Term("alignment", Alignment()),
            Term("psl", PrototypeScattering(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
        queue=prototype_queue(config),
        predictor_rate=config.train.predictor_rate,
    )
    return Method(byol_parts(config), (train,))
