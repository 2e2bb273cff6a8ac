"""PCL: MoCo, and each image told from the prototypes of other clusters at several granularities."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import further_clusterings, moco_parts, negative_queue
from propos.objectives import InfoNce, ProtoNce


def pcl(config: Config) -> Method:
    """MoCo, and after the warm-up each image beside the prototypes of several clusterings."""
    train = Stage(
        terms=(
            Term("contrast", InfoNce(config.contrast.temperature)),
            Term("prototypes", ProtoNce(), config.pcl.weight, starts=config.train.warmup),
        ),
        queue=negative_queue(config),
        further=further_clusterings(config),
    )
    return Method(moco_parts(config), (train,))
