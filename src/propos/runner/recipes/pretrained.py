"""The recipe for photographs if a pretrained network is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from propos.config import Config, EstepSettings, NetworkSettings, StartSettings, TrainSettings, ViewSettings

# Settings for fine-tuning a pretrained network: a few epochs at a low rate, with clusters from the start.
TUNING: Mapping[str, Any] = {
    "method": "propos",
    "propos.psl_start": 0,
    "train.epochs": 5,
    "train.batch_size": 128,
    "train.lr": 0.01,
    "train.warmup": 1,
    "train.weight_decay": 1e-4,
}


def pretrained() -> Config:
    """Photographs, clustered by the features of a frozen pretrained network: minutes for thousands on a CPU."""
    return Config(
        recipe="pretrained",
        method="kmeans-features",
        views=ViewSettings(preset="natural", size=224, keep="shapes", plain="centre"),
        start=StartSettings(network="efficientnet-lite0"),
        network=NetworkSettings(backbone="whitened", hidden=512, dimension=128, momentum=0.99),
        # With 10 starts one seed in six ended in a worse optimum, by its own measure too; 50 take a second.
        estep=EstepSettings(restarts=50, averaged=7),
        # For methods that train heads on the features.
        train=TrainSettings(epochs=60, batch_size=256, lr=0.2, warmup=3),
        sections={"propos": {"psl_start": 20}},
    )
