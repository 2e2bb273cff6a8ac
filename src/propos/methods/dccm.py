"""DCCM: clusters that learn from their own labels, their own graph and local information (Wu et al., ICCV 2019)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.networks import Discriminating, Head, Parts, feature_width
from propos.objectives import AnsweredGraph, AnsweredLabels, LocalInformation

ALIKE = 0.95  # the cosine of two images' answers from which on they are joined
LABELS, GRAPH, LOCAL = 5.0, 1.0, 0.05  # how much each term counts


def dccm(config: Config) -> Method:
    """Have views learn what the head says of plain images: sure labels, who is like whom, and which places go with it.

    The places are those of the first stage's maps; a discriminator tells an image's own, and those of one like it, from
    others'. Losses, thresholds and weights are those of its public code, but: the recipe's network, whose maps are
    averaged; the plain images of every batch are asked in its step (there a thousand, for ten passes); the
    discriminator reads logarithms of shares (there what batch norm makes shares of); whom an image is compared with are
    the next of the batch, whose order is drawn anew. Unverified: any data but CIFAR-10 and CIFAR-20.
    """
    assert config.clusters is not None
    train = Stage(
        terms=(
            Term("labels", AnsweredLabels(config.confident.above), weight=LABELS),
            Term("graph", AnsweredGraph(ALIKE), weight=GRAPH),
            Term("local", LocalInformation(ALIKE), weight=LOCAL),
        ),
        pairs=Pairing(again="plain"),
        answer="head",
    )
    parts = Parts(
        projector=Head((config.network.dimension,), norm_last=True),
        cluster_head=Head((config.clusters,), norm_last=True, relu_first=True),
        cluster_head_reads="projections",
        discriminator=Discriminating(feature_width(config.network.backbone, config.network.width)),
    )
    return Method(parts, (train,), embeds="online")
