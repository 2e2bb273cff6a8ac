"""MiCE: an expert for each cluster, and a gate that says whose each image is (Tsai et al., ICLR 2021)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.parts import negative_queue
from propos.networks import Head, Parts
from propos.objectives import ContrastiveExperts
from propos.runs import CONFIDENCE_TEMPERATURE


def mice(config: Config) -> Method:
    """Tell images apart by a mixture of experts, one for each cluster, and let the gate between them say the cluster.

    As in its public code, but: both views are told from the queue, each by the other; the prototypes are found before
    every epoch among plain images, which the gate puts into clusters, and no gradient moves them between; the gate
    has batch norm, without which one expert is trusted with nearly all images at first; the gate answers, which needs
    no queue, where theirs is the posterior of all three views. Unverified: CIFAR-10 at their length.
    """
    assert config.clusters is not None
    clusters, width = config.clusters, config.network.dimension
    train = Stage(
        terms=(Term("experts", ContrastiveExperts(config.contrast.temperature)),),
        pairs=Pairing(again="random"),
        queue=negative_queue(config),
        answer="head",
    )
    seen = max(width, clusters)  # so many directions as far apart as can be need as many numbers
    trust = config.contrast.cluster_temperature
    # What it learns by are shares of cosines, none far above 1 / K; how sure it is, is said as k-means says it.
    gate = Head((seen, clusters), simplex=True, temperature=trust, answers_at=CONFIDENCE_TEMPERATURE / trust)
    experts = Head((clusters * width,), unit_vectors=clusters)
    return Method(Parts(experts, target="moving average", cluster_head=gate), (train,))
