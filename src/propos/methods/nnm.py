"""NNM: nearest neighbours of now, in the batch and among all images, share a cluster (Dang et al., CVPR 2021)."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.parts import by_heads, linear_head
from propos.methods.preparations import NearestAnswers, Neighbours
from propos.methods.pretext import without_head
from propos.objectives import (
    ClusterBalance,
    ClusterMatching,
    EachHead,
    NearestInBatch,
    NearestOfAll,
    NeighbourAgreement,
)

GLOBAL_STARTS = 1  # in the first epoch heads say nothing yet that could be matched


def nnm(config: Config) -> Method:
    """Match images with their neighbours, with their nearest in the batch and, from the second epoch, with that of all.

    As in its public code, but: the nearest of all images is that of the image itself (there, shuffled rows are read by
    the numbers of images, so it is anyone's), by the cosine of plain views (there of strong ones); head and epoch are
    chosen by no labels.
    """
    first, stages = without_head(config)

    matching = Stage(
        "matching",
        terms=(
            Term("agreement", EachHead(NearestInBatch(NeighbourAgreement()))),
            Term("clusters", EachHead(NearestInBatch(ClusterMatching()))),
            Term("balance", EachHead(NearestInBatch(ClusterBalance(first_alone=True))), config.balance.weight),
            Term("all_agreement", EachHead(NearestOfAll(NeighbourAgreement())), starts=GLOBAL_STARTS),
            Term("all_clusters", EachHead(NearestOfAll(ClusterMatching())), starts=GLOBAL_STARTS),
        ),
        share=1 - config.pretext.share,
        changes=by_heads(config),
        trains=("backbone", "cluster_head"),
        pairs=Pairing(partner="neighbour", first="strong", second="strong", again="strong"),
        opens_with=(Neighbours(config.neighbours.count, of="features", itself=True),),
        refreshes=(NearestAnswers(),),
        answer="head",
    )
    parts = replace(first.parts, cluster_head=linear_head(config), heads=config.heads.count)
    return Method(parts, (*stages, matching), embeds=first.embeds)
