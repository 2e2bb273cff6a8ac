"""The paper's own settings; everything not named here is a default of Config, which are the paper's."""

from __future__ import annotations

from propos.config import Config, NetworkSettings, ViewSettings


def paper_32() -> Config:
    """The paper's setting for 32×32 colour images: ResNet-18, 1,000 epochs, batch 256 (a GPU's work)."""
    return Config(recipe="paper-32")


def paper_96() -> Config:
    """The paper's setting for 96×96 colour images: ResNet-34, 1,000 epochs, batch 256 (a GPU's work)."""
    return Config(
        recipe="paper-96",
        views=ViewSettings(preset="natural", size=96),
        network=NetworkSettings(backbone="resnet34", stem="imagenet"),
    )
