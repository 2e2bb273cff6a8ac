"""The setup that a method is built for: sizes, numbers of images and clusters, and shared settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from propos.config import Config, NetworkSettings, StartSettings, TrainSettings, ViewSettings
from propos.methods.seeds import generator
from propos.networks import Encoder, Tuned, Tuning, Whitening, backbone, network_of


@dataclass(frozen=True)
class Setup:
    """The settings and sizes from which a method builds its networks and stages."""

    network: NetworkSettings
    train: TrainSettings
    views: ViewSettings
    start: StartSettings
    seed: int
    clusters: int | None
    channels: int = 3  # of the images, or the number of features
    images: int = 0  # that are clustered; 0 where the method only predicts
    unlabelled: int = 0  # further images that are only trained on
    sections: Mapping[str, Mapping[str, Any]] | None = None  # the settings of methods, by their names

    @classmethod
    def of(cls, config: Config, channels: int = 3, images: int = 0, unlabelled: int = 0) -> Setup:
        """Return the setup of complete settings."""
        shared = config.network, config.train, config.views, config.start, config.seed, config.clusters
        return cls(*shared, channels, images, unlabelled, config.sections)

    @property
    def from_features(self) -> bool:
        """Whether the inputs are a frozen pretrained network's features, or the maps below its last stage."""
        return self.start.has_frozen_part

    @property
    def tuned(self) -> bool:
        """Whether a pretrained network is trained further."""
        return self.start.network is not None and self.start.learns != "nothing"

    @property
    def rows(self) -> int:
        """The number of images that a step may hold, clustered or only trained on."""
        return self.images + self.unlabelled

    def generator(self, *purpose: str | int) -> torch.Generator:
        """Return a generator for one purpose."""
        return generator(self.seed, *purpose)

    def encoder(self, projector: Callable[[int], nn.Module] | None = None) -> Encoder:
        """Build the backbone that the settings describe, with a projector made for its width."""
        network = self.network
        if self.tuned:
            assert self.start.learns != "nothing"
            tuning = Tuning(network_of(self.start), self.start.learns, self.start.norms == "kept")
            return Encoder(Tuned(tuning, network.components), network.components, projector)
        if network.backbone == "whitened":
            return Encoder(Whitening(self.channels, network.components), network.components, projector)
        built = backbone(network.backbone, network.stem, self.channels, network.width)
        return Encoder(built, built.features, projector)
