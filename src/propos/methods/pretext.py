"""Methods that build on what another has learnt: as stages of their own run, or as a finished run to go on from."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.errors import InputError
from propos.methods.method import Method, Stage
from propos.networks import Head, Parts


def pretext(config: Config) -> tuple[Method, tuple[Stage, ...]]:
    """Return the method that learns the images first, and its stages; none where a finished run is gone on from.

    Its stages share `pretext.share` of the epochs; what builds on it has the rest. Heads of its own do not learn yet.
    """
    from propos.methods import METHODS, check_method  # which know the methods that build on others

    name = config.pretext.method
    if name is None:
        raise InputError(f"--method {config.method}: builds on what another has learnt: set pretext.method")
    check_method(name, "pretext.method =")
    alone = config.with_settings({"method": name, "pretext.method": None})
    first = METHODS[name](alone)
    if not first.terms:
        raise InputError(f"pretext.method = {name}: learns nothing to build on: choose another")
    whole = sum(stage.share for stage in first.stages)
    later = [part for part in ("predictor", "cluster_head", "over_head") if getattr(first.parts, part) is None]
    stages = tuple(
        replace(
            stage,
            share=config.pretext.share * stage.share / whole,
            trains=tuple(part for part in stage.trains if part not in later),
        )
        for stage in first.stages
        if config.pretext.share
    )
    return first, stages


def clusterer(config: Config) -> tuple[Method, tuple[Stage, ...]]:
    """Return what finds clusters first: a method that learns, or k-means on a pretrained network's features.

    Those have nothing that could learn but a layer over them, which begins by changing nothing.
    """
    from propos.methods import FEATURES_ALONE

    if config.start.network is None or config.pretext.method not in FEATURES_ALONE:
        return pretext(config)
    return Method(Parts(projector=Head((config.network.components,), as_it_is=True)), (), embeds="online"), ()


def without_head(config: Config) -> tuple[Method, tuple[Stage, ...]]:
    """Return what learns first, for a method that brings cluster heads; what trains a head of its own is refused."""
    first, stages = pretext(config)
    if stages and first.parts.cluster_head is not None:
        name = config.pretext.method
        raise InputError(f"pretext.method = {name}: trains a cluster head of its own: choose one that has none")
    return first, stages


def frozen_features(config: Config) -> tuple[Method, tuple[Stage, ...]]:
    """Return what makes the features that heads are trained on: a pretrained network, or what learns first."""
    if config.start.network is not None:
        return Method(Parts(projector=None), (), embeds="online"), ()
    return without_head(config)


def epochs_after(config: Config) -> int:
    """Return how many epochs what builds on another method has."""
    return max(1, config.train.epochs - round(config.pretext.share * config.train.epochs))
