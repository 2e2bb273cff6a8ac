"""BYOL: ProPos without noise and without prototypes."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts
from propos.objectives import Alignment


def byol(config: Config) -> Method:
    """Align each image with its other view, nothing else."""
    train = Stage(terms=(Term("alignment", Alignment()),), predictor_rate=config.train.predictor_rate)
    return Method(byol_parts(config), (train,))
