"""BYOL with PCL's prototypes: the same term on BYOL's projections."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, further_clusterings
from propos.objectives import Alignment, ProtoNce


def byol_pcl(config: Config) -> Method:
    """BYOL, and after the warm-up each image beside the prototypes of several clusterings."""
    train = Stage(
        terms=(
            Term("alignment", Alignment()),
            Term("prototypes", ProtoNce(), config.pcl.weight, starts=config.train.warmup),
        ),
        further=further_clusterings(config),
        predictor_rate=config.train.predictor_rate,
    )
    return Method(byol_parts(config), (train,))
