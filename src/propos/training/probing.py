"""What a linear probe sees: the frozen backbone's features of random crops in training, of plain views in testing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.augment import RandomViews, Shapes, shapes_of
from propos.config import ViewSettings
from propos.data import Source, prefetch
from propos.errors import InputError
from propos.training.embedding import BATCH
from propos.training.feeding import plain
from propos.training.model import Model

Positions = Int[Tensor, " B"]


@dataclass(frozen=True)
class BackboneFeatures:
    """The features of a source's images by a model's frozen backbone, a batch at a time; none are held."""

    model: Model
    source: Source
    draws: torch.Generator

    @property
    def width(self) -> int:
        """How many features an image has."""
        return self.model.encoder.features or self.model.channels * self.model.config.views.size**2

    def of_crops(self, positions: Positions) -> Float[Tensor, "B F"]:
        """Return the features of a random crop of each image, mirrored or not, drawn as the run's views draw theirs."""
        config, device = self.model.config, self.model.encoder.device
        if self.model.seeing is not None:
            raise InputError(
                f"--linear paper: {config.start.network} sees the run's images first, and whole: use --linear fast"
            )
        assert config.pixels.mean is not None
        assert config.pixels.std is not None
        views = RandomViews(crops_alone(config.views), config.pixels.mean, config.pixels.std)
        features = []
        parts = positions.split(BATCH)
        prefetch(self.source, (part.numpy() for part in parts))
        for part in parts:
            images, shapes = _read(self.source, part)
            made = views.make(1, images.to(device), self.draws, shapes.aspects, frames=shapes.frames)
            features += [self._pass(made[0])]
        return torch.cat(features)

    def of_plain_views(self, positions: Positions) -> Iterator[Float[Tensor, "b F"]]:
        """Yield the features of the images as they are, a few at a time."""
        fed, parts = self.model.fed(self.source), positions.split(BATCH)
        prefetch(self.source, (part.numpy() for part in parts))
        for part in parts:
            images, shapes = _read(fed, part)
            yield self._pass(plain(images.to(self.model.encoder.device), self.model.config, shapes))

    def held(self, positions: Positions) -> Float[Tensor, "N F"]:
        """Return the features of the images as they are in one table, which is all that is held of them."""
        table = torch.empty((len(positions), self.width), device=self.model.encoder.device)
        start = 0
        for features in self.of_plain_views(positions):
            table[start : start + len(features)] = features
            start += len(features)
        return table

    @torch.no_grad()
    def _pass(self, views: Float[Tensor, "B ..."]) -> Float[Tensor, "B F"]:
        backbone = self.model.encoder.backbone.eval()
        features: Tensor = backbone(views)
        return features


def crops_alone(views: ViewSettings) -> ViewSettings:
    """Return the settings of views that are crops, mirrored as often, with no other change."""
    nothing = dict.fromkeys(("rotation", "brightness", "contrast", "saturation", "hue", "jitter", "grey"), 0.0)
    return ViewSettings(
        **{
            **views.model_dump(),
            **nothing,
            "turns": 1,
            "colours": "at-once",
            "blur": (0.0, 0.0),
            "solarise": (0.0, 0.0),
        }
    )


def _read(source: Source, positions: Positions) -> tuple[Tensor, Shapes]:
    places: Int[np.ndarray, " B"] = positions.numpy()
    return torch.from_numpy(source.batch(places)), shapes_of(source, places)
