"""Recipes for one ordinary machine without a GPU: a small network, short runs, scattering that starts late."""

from __future__ import annotations

from propos.config import (
    Config,
    ContrastSettings,
    NetworkSettings,
    PslSettings,
    PullSettings,
    TrainSettings,
    ViewSettings,
)

SMALL_NETWORK = NetworkSettings(backbone="resnet-small", stem="small", hidden=512, dimension=128, momentum=0.99)
APART = ContrastSettings(weight=1.0)  # each image from the others of its batch: docs/results.md
TOGETHER = PullSettings(weight=1.0)  # those that their neighbours agree with, at the end


def digits() -> Config:
    """Tiny greyscale images (8×8 and the like): minutes on a CPU."""
    return Config(
        recipe="digits",
        views=ViewSettings(preset="digits", size=8),
        network=SMALL_NETWORK,
        psl=PslSettings(start=50),
        contrast=APART,
        pull=TOGETHER,
        train=TrainSettings(epochs=100, batch_size=128, lr=0.2, warmup=3),
    )


def small_grey() -> Config:
    """Small greyscale images (28×28 and the like) on a CPU: seen at 16×16, in small batches."""
    return Config(
        recipe="small-grey",
        views=ViewSettings(preset="greyscale", size=16),
        network=SMALL_NETWORK,
        psl=PslSettings(start=10),
        contrast=APART,
        pull=TOGETHER,
        train=TrainSettings(epochs=20, batch_size=64, lr=0.2, warmup=2),
    )


def small_colour() -> Config:
    """Small colour images (32×32 and the like) on a CPU: seen at 24×24, in small batches."""
    return Config(
        recipe="small-colour",
        views=ViewSettings(preset="natural", size=24, crop_scale=(0.2, 1.0)),
        network=SMALL_NETWORK,
        psl=PslSettings(start=20),
        train=TrainSettings(epochs=40, batch_size=64, lr=0.2, warmup=4),
    )


def photos() -> Config:
    """Larger images on a CPU: seen at 64×64 by a small network."""
    return Config(
        recipe="photos",
        views=ViewSettings(preset="natural", size=64, crop_scale=(0.2, 1.0)),
        network=NetworkSettings(backbone="resnet-small", stem="imagenet", hidden=512, dimension=128, momentum=0.99),
        psl=PslSettings(start=50),
        train=TrainSettings(epochs=100, batch_size=64, lr=0.2, warmup=5),
    )
