"""Recipes for one ordinary machine without a GPU: a small network, short runs, a late start of PSL."""

from __future__ import annotations

from propos.config import Config, NetworkSettings, TrainSettings, ViewSettings

SMALL_NETWORK = NetworkSettings(backbone="resnet-small", stem="small", hidden=512, dimension=128, momentum=0.99)
# Our additions to the paper's losses: contrast within a batch; at the end a pull of images whose neighbours agree.
ADDED = {"contrast_weight": 1.0, "pull_weight": 1.0}  # docs/results.md


def digits() -> Config:
    """Tiny greyscale images (8×8 and the like): minutes on a CPU."""
    return Config(
        recipe="digits",
        views=ViewSettings(preset="digits", size=8),
        network=SMALL_NETWORK,
        train=TrainSettings(epochs=100, batch_size=128, lr=0.2, warmup=3),
        sections={"propos": {"psl_start": 50, **ADDED}},
    )


def small_grey() -> Config:
    """Small greyscale images (28×28 and the like) on a CPU: resized to 16×16, in small batches."""
    return Config(
        recipe="small-grey",
        views=ViewSettings(preset="greyscale", size=16),
        network=SMALL_NETWORK,
        train=TrainSettings(epochs=20, batch_size=64, lr=0.2, warmup=2),
        sections={"propos": {"psl_start": 10, **ADDED}},
    )


def small_colour() -> Config:
    """Small colour images (32×32 and the like) on a CPU: resized to 24×24, in small batches."""
    return Config(
        recipe="small-colour",
        views=ViewSettings(preset="natural", size=24, crop_scale=(0.2, 1.0)),
        network=SMALL_NETWORK,
        train=TrainSettings(epochs=40, batch_size=64, lr=0.2, warmup=4),
        sections={"propos": {"psl_start": 20, **ADDED}},
    )


def photos() -> Config:
    """Larger images on a CPU: resized to 64×64, with a small network."""
    return Config(
        recipe="photos",
        views=ViewSettings(preset="natural", size=64, crop_scale=(0.2, 1.0)),
        network=NetworkSettings(backbone="resnet-small", stem="imagenet", hidden=512, dimension=128, momentum=0.99),
        train=TrainSettings(epochs=100, batch_size=64, lr=0.2, warmup=5),
        sections={"propos": {"psl_start": 50, **ADDED}},
    )
