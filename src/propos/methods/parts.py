"""The networks that several methods share, as the settings size them."""

from __future__ import annotations

from typing import Any, Literal

from propos.config import Config
from propos.errors import InputError
from propos.methods.method import FurtherClusterings, Pairing, QueueSpec
from propos.methods.preparations import Features, Neighbours
from propos.networks import Head, Parts, Tuning, feature_width

OF_ITS_VIEW = Pairing(first="plain")  # an image as it is and one random view of it
ASKED = 50  # neighbours in the batch that say at most whether an image is to be relied on
NEAR = 10  # images that may stand for an image's other view, where there are only features


def byol_parts(config: Config, cluster_head: Head | None = None) -> Parts:
    """Return a projector and a predictor of FC-BN-ReLU-FC, and a target that is a moving average.

    Where a pretrained network is tuned there are no heads: clusters are found in what it makes, from those that it
    makes before it learns, and a head drawn at random would lose them.
    """
    tuning = tuning_of(config)
    if tuning is not None:
        return Parts(projector=None, target="moving average", cluster_head=cluster_head, tuning=tuning)
    head = Head((config.network.hidden, config.network.dimension))
    return Parts(projector=head, predictor=head, target="moving average", cluster_head=cluster_head)


def tuning_of(config: Config) -> Tuning | None:
    """Return what of a pretrained network the settings let learn."""
    start = config.start
    if start.network is None or start.learns == "nothing":
        return None
    return Tuning(start.network, start.learns, start.norms == "kept")


def feeding(config: Config) -> dict[str, Any]:
    """Return what a stage is fed that trains heads: pairs of views, or features of an image and of a near one.

    Where the network's last stage learns these are the maps that it reads; where all of it does, views of the two.

    A pretrained network's features are computed once, so there are no random views of them; what is near by them shows
    the same kind of thing nine times in ten (docs/pretrained.md).
    """
    if config.start.network is None:
        return {}
    if config.start.learns != "nothing":
        seen: Literal["random", "plain"] = "plain" if config.start.learns == "last" else "random"
        return {
            "trains": ("backbone",),
            "pairs": Pairing(partner="neighbour", first=seen, second=seen),
            "opens_with": (Neighbours(NEAR),),
        }
    return {
        "trains": ("projector", "predictor"),
        "pairs": Pairing(partner="neighbour", of="features"),
        "opens_with": (Features(), Neighbours(NEAR, of="features")),
    }


def plain_head(config: Config, outer: int) -> Head:
    """Return a head d-d-ReLU-outer without batch norm, d the width of the backbone's output."""
    return Head((feature_width(config.network.backbone, config.network.width), outer), norm=False)


def deep_head(config: Config, outer: int) -> Head:
    """Return a head of three layers with batch norm between them, as wide as the backbone's output before the last."""
    width = feature_width(config.network.backbone, config.network.width)
    return Head((width, width, outer))


def linear_head(config: Config) -> Head:
    """Return a cluster head of one layer."""
    assert config.clusters is not None
    return Head((config.clusters,))


def head_parts(config: Config) -> Parts:
    """Return linear cluster heads, of K and of many more clusters, on a projection that is linear too."""
    assert config.clusters is not None
    return Parts(
        projector=Head((config.network.dimension,)),
        cluster_head=linear_head(config),
        over_head=Head((config.overclustering.times * config.clusters,)),
        heads=config.heads.count,
        cluster_head_reads="projections",
    )


def by_heads(config: Config) -> dict[str, Any]:
    """Return what the settings of training are where a trained network learns from its new cluster heads."""
    return {
        "optimiser": "adam",
        "lr": config.heads.lr,
        "schedule": "constant",
        "warmup": 0,
        "weight_decay": 1e-4,
    }


def moco_parts(config: Config) -> Parts:
    """Return a head without batch norm and a key encoder that is the query encoder's moving average."""
    return Parts(projector=plain_head(config, config.network.dimension), target="moving average")


def prototype_queue(config: Config) -> QueueSpec | None:
    """Return the queue whose entries join the prototypes of a batch, if the settings want one."""
    return QueueSpec(config.queue.size) if config.queue.size else None


def negative_queue(config: Config) -> QueueSpec:
    """Return the queue of keys that images are told from."""
    if not config.queue.size:
        raise InputError(f"queue.size = 0: {config.method} tells images from a queue: set it to 1 or more")
    return QueueSpec(config.queue.size, random_start=True)


def further_clusterings(config: Config) -> FurtherClusterings:
    """Return the clusterings at several granularities that PCL's prototypes are of, found after the warm-up."""
    return FurtherClusterings(config.pcl.clusters, config.train.warmup, config.pcl.temperature)
