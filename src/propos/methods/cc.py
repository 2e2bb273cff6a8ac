"""CC (contrastive clustering): instances told apart by rows, clusters by columns."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Term
from propos.methods.parts import plain_head
from propos.networks import Parts
from propos.objectives import ClusterBalance, ClusterContrast, NtXent


def cc(config: Config) -> Method:
    """Tell images apart by one head and clusters by another, whose softmax assigns them."""
    assert config.clusters is not None
    return Method(
        parts=Parts(
            projector=plain_head(config, config.network.dimension),
            cluster_head=plain_head(config, config.clusters),
        ),
        terms=(
            Term("contrast", NtXent(config.contrast.temperature), weight=1.0),
            Term("cluster_contrast", ClusterContrast(config.contrast.cluster_temperature), weight=1.0),
            Term("cluster_balance", ClusterBalance(), weight=1.0),
        ),
        embeds="online",
    )
