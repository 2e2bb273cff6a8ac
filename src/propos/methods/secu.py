"""SeCu: centres that are learnt with the network and not pushed by other clusters' images (Qian, ICCV 2023)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.networks import CentreSets, Head, Parts, feature_width
from propos.objectives import CentreAgreement, CentreLearning

CENTRE_RATE = 6.0  # of the network's peak, from the first step to the last: 1.2 and 0.2
LEAST = 0.9  # of an even share of the images, that a cluster is to have
HARD = 0.2  # how much an image's label counts beside what its other view says


def secu(config: Config) -> Method:
    """Learn the network and the centres of K, 2K, … clusters together, none of them smaller than it should be.

    As in its public code with the constraint of sizes, but: the network's rate rises from the first epoch on, in which
    theirs is 0. Unverified: which head its authors' clusters are of (here the one of K), and their self-labelling after
    it, of which no code was found; there is none here.
    """
    assert config.clusters is not None
    hidden = feature_width(config.network.backbone, config.network.width)
    sizes = tuple(times * config.clusters for times in range(1, config.overclustering.times + 1))
    temperature, of_centres = config.contrast.temperature, config.contrast.cluster_temperature
    train = Stage(
        terms=(
            Term("agreement", CentreAgreement(temperature, HARD)),
            Term("centres", CentreLearning(of_centres)),
        ),
        answer="head",
        cluster_head_rate=CENTRE_RATE,
        cluster_head_constant=True,
    )
    centres = Head((config.clusters,), temperature=temperature, centres=CentreSets(sizes, config.balance.weight, LEAST))
    projector = Head((hidden, config.network.dimension))
    return Method(Parts(projector, cluster_head=centres, cluster_head_reads="projections"), (train,), embeds="online")
