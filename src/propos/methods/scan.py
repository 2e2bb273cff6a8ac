"""SCAN: neighbours share a cluster, then sure images label themselves (Van Gansbeke et al., ECCV 2020)."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.parts import by_heads, linear_head
from propos.methods.preparations import Neighbours
from propos.methods.pretext import without_head
from propos.objectives import ChosenHead, ClusterBalance, EachHead, NeighbourAgreement, SelfLabel

# Of the steps after the pretext, whose batches here have one size: 50 epochs of 390 and 200 of 50 on CIFAR-10.
CLUSTERING, LABELLING = 2 / 3, 1 / 3


def scan(config: Config) -> Method:
    """Let heads put each image with its neighbours, in clusters of equal shares; then label the sure ones by itself.

    As in its public code, but: heads are chosen by the loss they are trained with, of the last epoch, not by another on
    test images; labels come from the network as it predicts, not with the batch's statistics; a batch without a sure
    image asks for nothing.
    """
    first, stages = without_head(config)
    rest = 1 - config.pretext.share
    clustering = Stage(
        "clustering",
        terms=(
            Term("agreement", EachHead(NeighbourAgreement())),
            Term("balance", EachHead(ClusterBalance(first_alone=True)), config.balance.weight),
        ),
        share=CLUSTERING * rest,
        changes=by_heads(config),
        trains=("backbone", "cluster_head"),
        pairs=Pairing(partner="neighbour", first="strong", second="strong"),
        opens_with=(Neighbours(config.neighbours.count, itself=True),),
        answer="head",
    )
    labelling = Stage(
        "self-labelling",
        terms=(Term("labels", ChosenHead(SelfLabel(config.confident.above, config.confident.by_cluster))),),
        share=LABELLING * rest,
        changes=by_heads(config),
        trains=("backbone", "cluster_head"),
        pairs=Pairing(first="plain", second="strong", settled=True),
        answer="head",
    )
    parts = replace(first.parts, cluster_head=linear_head(config), heads=config.heads.count)
    return Method(parts, (*stages, clustering, labelling), embeds=first.embeds)
