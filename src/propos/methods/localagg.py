"""LocalAgg: images gather with those that clusterings keep putting beside them (Zhuang et al., ICCV 2019)."""

from __future__ import annotations

from propos.config import Config
from propos.errors import InputError
from propos.methods.method import BankSpec, FurtherClusterings, Method, Stage, Term
from propos.networks import Head, Parts
from propos.objectives import InstanceSoftmax, LocalAggregation

CLUSTERINGS = 10  # whose clusters count together
NEAR = 4096  # images, against which those of an image's clusters are held
NEAR_CLUSTERS = 96  # or as many images as so many clusters hold: 4,096 of ImageNet's, of which there are 30,000
ALONE = 0.05  # of the epochs (10 of 200): images are told apart before any are pulled together


def localagg(config: Config) -> Method:
    """Tell images from a bank of all, then pull each to the near ones that share a cluster with it in any clustering.

    As in its public code, but: images are told from all others, not from noise drawn among them; clusterings are of the
    embeddings of plain images, not of the bank, and begin where they ended before; two views a step. Unverified: all
    but ImageNet, for which alone it was released; clusters and near images shrink with the data.
    """
    if config.clusters is None:
        raise InputError(f"{config.method} needs the number of clusters from the start: say it, as in -k 10")
    epochs, temperature = config.train.epochs, config.contrast.temperature
    alone = min(max(1, round(ALONE * epochs)), epochs - 1)
    clusters = (config.overclustering.times * config.clusters,) * CLUSTERINGS
    train = Stage(
        terms=(
            Term("instances", InstanceSoftmax(temperature), ends=alone),
            Term("aggregation", LocalAggregation(temperature, NEAR, NEAR_CLUSTERS), starts=alone),
        ),
        bank=BankSpec(config.bank.momentum),
        further=FurtherClusterings(clusters, alone, temperature, "overclustering.times", at_most_half=True),
    )
    return Method(Parts(projector=Head((config.network.dimension,))), (train,), embeds="online")
