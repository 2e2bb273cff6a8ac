"""From settings and a source to complete, checked settings."""

from __future__ import annotations

import numpy as np

from propos.config import Config
from propos.data import Source, distinct_images, pixel_statistics
from propos.errors import InputError
from propos.methods import build_method
from propos.networks import smallest_side


def prepare(config: Config, source: Source) -> Config:
    """Fill in what depends on the source (K, the meaning of pixels) and refuse what cannot work."""
    smallest = smallest_side(config.network.backbone, config.network.stem)
    if config.views.size < smallest:
        raise InputError(
            f"views.size = {config.views.size}: too small for {config.network.backbone}, which halves images to "
            f"nothing below {smallest} pixels; set views.size={smallest} or more"
        )
    late = [epoch for epoch in config.keep_epochs if epoch >= config.train.epochs]
    if late:
        raise InputError(
            f"keep_epochs names epoch {late[0]}: the last of {config.train.epochs} is {config.train.epochs - 1}"
        )
    clusters = _clusters(config, source)
    _check_method(config.with_settings({"clusters": clusters}), source)
    mean, std = config.pixels.mean, config.pixels.std
    if mean is None or std is None:
        mean, std = source.statistics or pixel_statistics(source)
    if len(mean) != source.channels or len(std) != source.channels:
        raise InputError(
            f"pixels.mean and pixels.std have {len(mean)} and {len(std)} values; "
            f"the images have {source.channels}: give one a channel"
        )
    return config.with_settings(
        {
            "clusters": clusters,
            "pixels.black": source.black,
            "pixels.white": source.white,
            "pixels.mean": mean,
            "pixels.std": std,
        }
    )


def _check_method(config: Config, source: Source) -> None:
    """Refuse further clusterings that the images cannot fill."""
    finest = max(build_method(config).groupings, default=0)
    distinct = distinct_images(source, enough=finest) if finest else 0
    if distinct < finest:
        raise InputError(
            f"pcl.clusters holds {finest}: only {distinct} images differ; set smaller numbers (--set pcl.clusters=[…])"
        )


def _clusters(config: Config, source: Source) -> int:
    images = len(source)
    if images < 2:
        raise InputError(f"{source.name}: holds one image: there is nothing to cluster")
    clusters = config.clusters
    if clusters is None:
        if source.labels is None:
            raise InputError(f"{source.name}: has no labels to count, so say how many clusters to find, as in -k 10")
        clusters = len(np.unique(source.labels))
    if clusters < 2:
        raise InputError(f"-k {clusters}: at least 2 clusters are needed to tell images apart")
    if clusters > images:
        raise InputError(f"-k {clusters}: there are only {images} images; choose from 2 to {images}")
    distinct = distinct_images(source, enough=clusters)
    if distinct == 1:
        raise InputError(f"{source.name}: all {images} images are identical: there is nothing to cluster")
    if distinct < clusters:
        raise InputError(f"-k {clusters}: only {distinct} of the {images} images differ; choose from 2 to {distinct}")
    return clusters
