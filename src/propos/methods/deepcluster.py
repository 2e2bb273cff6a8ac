"""DeepCluster (Caron et al., 2018): k-means gives labels, a network learns them, k-means sorts what it learnt."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import FurtherClusterings, Method, Stage, Term
from propos.networks import Head, Parts
from propos.objectives import PseudoLabels


def deepcluster(config: Config) -> Method:
    """Sort images into many clusters, learn to tell these apart by a head that begins anew each time, sort again.

    Clusters of training are found in whitened embeddings, and each is drawn from as often. The run's own clusters are
    those of k-means on the embeddings, as with every method here.
    """
    assert config.clusters is not None
    many = config.overclustering.times * config.clusters
    train = Stage(
        terms=(Term("pseudo_labels", PseudoLabels()),),
        further=FurtherClusterings(
            (many,),
            starts=0,
            temperature=1.0,
            setting="overclustering.times",
            at_most_half=True,
            whitened=True,
            balanced=True,
        ),
        resets=("cluster_head",),
    )
    parts = Parts(
        projector=Head((config.network.hidden, config.network.dimension)),
        cluster_head=Head((many,), norm=False, relu_first=True),
        cluster_head_reads="projections",
    )
    return Method(parts, (train,), embeds="online")
