"""GCC: neighbours as positives, of embeddings and of assignments (Zhong et al., ICCV 2021)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.parts import linear_head, plain_head
from propos.methods.preparations import Neighbours, NeighbourWeights
from propos.networks import Parts
from propos.objectives import ClusterBalance, ClusterMatching, GraphContrast, NtXent

ALONE, TOGETHER = 50, 950  # epochs without a graph, and with one
EVERY = 5  # epochs a graph lasts
CONTRAST = 2.0  # the weight of the contrast of embeddings


def gcc(config: Config) -> Method:
    """Tell images apart; then put them with their neighbours, by embeddings and by clusters, in a graph renewed often.

    As in its public code, but: the graph is that of plain images as the network is (there, of the means of four epochs'
    views); an image has one neighbour a step, for both losses (there three and another); a neighbour's weight counts
    once (there twice); near images are not told apart, nor an image from itself. Unverified: that the paper leaves near
    images out as well.
    """
    temperature = config.contrast.temperature
    first = max(1, round(ALONE / (ALONE + TOGETHER) * config.train.epochs))
    alone = Stage(
        "contrast",
        terms=(Term("contrast", NtXent(temperature), CONTRAST),),
        share=ALONE,
        changes={"schedule": "constant", "warmup": min(config.train.warmup, first)},
        trains=("backbone", "projector"),
    )
    together = Stage(
        "graph",
        terms=(
            Term("contrast", GraphContrast(temperature), CONTRAST),
            Term("clusters", ClusterMatching()),
            Term("balance", ClusterBalance(first_alone=True), config.balance.weight),
        ),
        share=TOGETHER,
        changes={"warmup": 0},
        pairs=Pairing(partner="neighbour", again="random", again_for="projector"),
        refreshes=(Neighbours(config.neighbours.count, itself=True), NeighbourWeights()),
        refresh_every=EVERY,
        answer="head",
    )
    parts = Parts(projector=plain_head(config, config.network.dimension), cluster_head=linear_head(config))
    return Method(parts, (alone, together), embeds="online")
