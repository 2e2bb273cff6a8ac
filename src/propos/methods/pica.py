"""PICA: the partition that is surest of itself, cluster matched with cluster (Huang et al., CVPR 2020)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import OF_ITS_VIEW, head_parts
from propos.objectives import ClusterBalance, ClusterMatching, EachHead, OverHeads


def pica(config: Config) -> Method:
    """Match the clusters of images with those of their random views, one to one, in K and in many more clusters.

    As in its public code, but: both heads learn in every step (there, epoch by epoch in turn); colours, not edges; one
    random view of an image a step, not three; no epoch is chosen by labels.
    """
    matching, balance = ClusterMatching(), ClusterBalance(first_alone=True)
    train = Stage(
        terms=(
            Term("clusters", EachHead(matching)),
            Term("balance", EachHead(balance), config.balance.weight),
            Term("over_clusters", OverHeads(matching)),
            Term("over_balance", OverHeads(balance), config.balance.weight),
        ),
        pairs=OF_ITS_VIEW,
        answer="head",
    )
    return Method(head_parts(config), (train,), embeds="online")
