"""TCL: contrastive clustering of weak and strong views, then of its surest labels (Li et al., IJCV 2022)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.parts import deep_head
from propos.methods.preparations import SureLabels
from propos.networks import Parts
from propos.objectives import ClusterBalance, ClusterContrast, GivenLabels, LabelledContrast, NtXent

TRAINING, BOOSTING = 1000, 200  # epochs of the two stages
LABELLED = 0.5  # γ: the share of the images that may be labelled at once

WEAK_AND_STRONG = Pairing(first="random", second="strong")


def tcl(config: Config) -> Method:
    """Tell images and clusters apart in weak and strong views; then label the surest, and learn and spare their labels.

    As in its public code, but: labels are renewed before each epoch, of all images (there in each step, of the batch);
    the layer that both heads read first is each head's own; cluster heads start as torch's layers do; labels go to as
    many clusters as there are, and to the images they were found for.
    """
    assert config.clusters is not None
    contrast = config.contrast
    train = Stage(
        terms=(
            Term("contrast", NtXent(contrast.temperature)),
            Term("cluster_contrast", ClusterContrast(contrast.cluster_temperature)),
            Term("cluster_balance", ClusterBalance()),
        ),
        share=TRAINING,
        pairs=WEAK_AND_STRONG,
        answer="head",
    )
    boost = Stage(
        "boost",
        terms=(Term("contrast", LabelledContrast(contrast.temperature)), Term("labels", GivenLabels())),
        share=BOOSTING,
        pairs=WEAK_AND_STRONG,
        refreshes=(SureLabels(LABELLED, config.confident.above),),
        answer="head",
    )
    parts = Parts(
        projector=deep_head(config, config.network.dimension), cluster_head=deep_head(config, config.clusters)
    )
    return Method(parts, (train, boost), embeds="online")
