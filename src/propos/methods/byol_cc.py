"""BYOL with CC's cluster head."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import byol_parts, plain_head
from propos.objectives import Alignment, ClusterBalance, ClusterContrast


def byol_cc(config: Config) -> Method:
    """BYOL, and a cluster head whose columns are told apart and held to equal shares."""
    assert config.clusters is not None
    train = Stage(
        terms=(
            Term("alignment", Alignment()),
            Term("cluster_contrast", ClusterContrast(config.contrast.cluster_temperature)),
            Term("cluster_balance", ClusterBalance()),
        ),
        predictor_rate=config.train.predictor_rate,
    )
    return Method(byol_parts(config, cluster_head=plain_head(config, config.clusters)), (train,))
