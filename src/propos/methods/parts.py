"""The networks that several methods share, as the settings size them."""

from __future__ import annotations

from propos.config import Config
from propos.errors import InputError
from propos.methods.method import FurtherClusterings, QueueSpec
from propos.networks import Head, Parts, feature_width


def byol_parts(config: Config, cluster_head: Head | None = None) -> Parts:
    """Return a projector and a predictor of FC-BN-ReLU-FC, and a target that is a moving average."""
    head = Head((config.network.hidden, config.network.dimension))
    return Parts(projector=head, predictor=head, target="moving average", cluster_head=cluster_head)


def plain_head(config: Config, outer: int) -> Head:
    """Return a head d-d-ReLU-outer without batch norm, d the width of the backbone's output."""
    return Head((feature_width(config.network.backbone, config.network.width), outer), norm=False)


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
