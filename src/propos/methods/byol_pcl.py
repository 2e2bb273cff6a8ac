"""BYOL with PCL's prototypes: the same term on BYOL's projections."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Term
from propos.methods.parts import byol_parts
from propos.objectives import Alignment, ProtoNce


def byol_pcl(config: Config) -> Method:
    """BYOL, and after the warm-up each image beside the prototypes of several clusterings."""
    return Method(
        parts=byol_parts(config),
        terms=(
            Term("alignment", Alignment(), weight=1.0),
            Term("prototypes", ProtoNce(), config.pcl.weight, starts=config.train.warmup),
        ),
        groupings=config.pcl.clusters,
        predictor_rate=config.train.predictor_rate,
    )
