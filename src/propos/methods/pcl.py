"""PCL: MoCo, and each image told from the prototypes of other clusters at several granularities."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Term
from propos.methods.parts import moco_parts, negative_queue
from propos.objectives import InfoNce, ProtoNce


def pcl(config: Config) -> Method:
    """MoCo, and after the warm-up each image beside the prototypes of several clusterings."""
    return Method(
        parts=moco_parts(config),
        terms=(
            Term("contrast", InfoNce(config.contrast.temperature), weight=1.0),
            Term("prototypes", ProtoNce(), config.pcl.weight, starts=config.train.warmup),
        ),
        queue=negative_queue(config),
        groupings=config.pcl.clusters,
    )
