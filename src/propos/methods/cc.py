"""CC (contrastive clustering): instances told apart by rows, clusters by columns."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import plain_head
from propos.networks import Parts
from propos.objectives import ClusterBalance, ClusterContrast, NtXent


def cc(config: Config) -> Method:
    """Tell images apart by one head and clusters by another, whose softmax assigns them."""
    assert config.clusters is not None
    projector, cluster_head = plain_head(config, config.network.dimension), plain_head(config, config.clusters)
    train = Stage(
        terms=(
            Term("contrast", NtXent(config.contrast.temperature)),
            Term("cluster_contrast", ClusterContrast(config.contrast.cluster_temperature)),
            Term("cluster_balance", ClusterBalance()),
        ),
    )
    return Method(Parts(projector=projector, cluster_head=cluster_head), (train,), embeds="online")
