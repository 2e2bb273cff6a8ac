"""Completion and validation of settings for a source."""

from __future__ import annotations

from typing import Any

import numpy as np

from propos.common.errors import InputError
from propos.config import Config
from propos.data import Source, distinct_images, pixel_statistics
from propos.methods import Setup, check_inputs, find_method, settings_of, stages_of
from propos.networks import network_of, smallest_side
from propos.training.learner import check_shares
from propos.training.stages import clusters_needed, stage_epochs

USUAL_RANGE = (2, 40)  # of K by default


def prepare(config: Config, source: Source) -> Config:
    """Fill in settings that depend on the source (K, the normalisation of pixels) and refuse invalid ones.

    Without labels, or if a range is given, K stays open: training chooses it from `suggest.range`.
    """
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
    if config.train.compile and config.train.recompute:
        raise InputError("train.compile and train.recompute: compiled blocks cannot be recomputed: set one of them")
    if len(source) < 2:
        raise InputError(f"{source.name}: contains one image: there is nothing to cluster")
    if config.clusters is None and (source.labels is None or config.suggest.range is not None):
        number: dict[str, Any] = {"suggest.range": _range(config, source)}
    else:
        number = {"clusters": _clusters(config, source)}
    check_shares(config, len(source))
    _check_method(config.with_settings(number), source)
    mean, std = config.pixels.mean, config.pixels.std
    if config.start.network is not None:  # its weights determine the normalisation
        mean, std = (values[: source.channels] for values in network_of(config.start).pixels)
    if mean is None or std is None:
        measured = source.statistics or pixel_statistics(source)
        mean, std = mean or measured[0], std or measured[1]
    if len(mean) != source.channels or len(std) != source.channels:
        raise InputError(
            f"pixels.mean and pixels.std have {len(mean)} and {len(std)} values; "
            f"the images have {source.channels}: give one for each channel"
        )
    return config.with_settings(
        {
            **number,
            "pixels.black": source.black,
            "pixels.white": source.white,
            "pixels.mean": mean,
            "pixels.std": std,
        }
    )


def _check_method(config: Config, source: Source) -> None:
    """Refuse fewer epochs than stages, and settings that the method itself refuses."""
    check_inputs(config)
    kind, stages = find_method(config.method), stages_of(config)
    if stages:
        stage_epochs(stages, config.train.epochs)
    setup = Setup.of(config, source.channels, len(source))
    kind.check(settings_of(config), setup, lambda enough: distinct_images(source, enough))


def _clusters(config: Config, source: Source) -> int:
    images = len(source)
    clusters = config.clusters
    if clusters is None:
        assert source.labels is not None
        clusters = len(np.unique(source.labels))
    if clusters < 2:
        raise InputError(f"-k {clusters}: at least 2 clusters are needed")
    if clusters > images:
        raise InputError(f"-k {clusters}: there are only {images} images; choose from 2 to {images}")
    distinct = _distinct(source, enough=clusters)
    if distinct < clusters:
        raise InputError(f"-k {clusters}: only {distinct} of the {images} images differ; choose from 2 to {distinct}")
    return clusters


def _range(config: Config, source: Source) -> tuple[int, int]:
    """Return the range of K to choose from; every cluster needs two different images."""
    kind = find_method(config.method)
    if kind.has_head or kind.needs_clusters:
        raise InputError(f"{config.method} needs the number of clusters from the start: give it, as in -k 10")
    lowest, highest = config.suggest.range or USUAL_RANGE
    if kind.trains and clusters_needed(config) == 0:
        number = lowest if lowest == highest else 10
        raise InputError(
            f"clusters are needed from the first epoch on: give their number, as in -k {number}{_needed_later(config)}"
        )
    distinct = _distinct(source, enough=2 * highest)
    if distinct < 2 * lowest:
        raise InputError(
            f"{source.name}: only {distinct} images differ, too few to choose among {lowest} or more clusters: "
            "give the number, as in -k 2"
        )
    return lowest, min(highest, distinct // 2)


def _needed_later(config: Config) -> str:
    """Return the changes to settings that make training need clusters later."""
    if config.train.epochs == 1:
        return ", or train longer (--epochs)"
    own = config.sections[config.method]
    starts = [f"set {config.method}.{key} to 1 or more" for key in own if key.endswith("_start") and own[key] == 0]
    drawing = ["sample images uniformly (--set train.balanced=false)"] if config.train.balanced else []
    changes = " and ".join(starts + drawing)
    return changes and f", or {changes}"


def _distinct(source: Source, enough: int) -> int:
    """Count different images up to `enough`; refuse images that are all identical."""
    distinct = distinct_images(source, enough)
    if distinct == 1:
        raise InputError(f"{source.name}: all {len(source)} images are identical: there is nothing to cluster")
    return distinct
