"""DCCM: clusters that learn from their own labels, their own graph and local information (Wu et al., ICCV 2019)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.preparations import Answers
from propos.networks import Discriminating, Head, Parts, feature_width
from propos.objectives import AnsweredGraph, AnsweredLabels, LocalInformation

ALIKE = 0.95  # the cosine of two images' answers from which on they are joined
LABELS, GRAPH, LOCAL = 5.0, 1.0, 0.05  # how much each term counts


def dccm(config: Config) -> Method:
    """Have views learn what plain images were sure of before the epoch: their labels, and who is like whom.

    Beside it a discriminator learns which of the first stage's maps go with what is said of an image: its own and those
    of one like it. Losses, thresholds and weights are those of its public code, but: the recipe's network, whose maps
    are averaged; answers of all images, before every epoch (there of a thousand, for ten passes); the discriminator
    reads logarithms of shares (there what batch norm makes shares of); other images are drawn by chance for each.
    """
    assert config.clusters is not None
    train = Stage(
        terms=(
            Term("labels", AnsweredLabels(config.confident.above), weight=LABELS),
            Term("graph", AnsweredGraph(ALIKE), weight=GRAPH),
            Term("local", LocalInformation(ALIKE), weight=LOCAL),
        ),
        refreshes=(Answers(),),
        answer="head",
    )
    parts = Parts(
        projector=Head((config.network.dimension,), norm_last=True),
        cluster_head=Head((config.clusters,), norm_last=True, relu_first=True),
        cluster_head_reads="projections",
        discriminator=Discriminating(feature_width(config.network.backbone, config.network.width)),
    )
    return Method(parts, (train,), embeds="online")
