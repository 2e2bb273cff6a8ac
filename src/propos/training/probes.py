"""Evaluation of a finished run: a linear probe of its backbone, and other clusterings of its embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.augment import RandomViews, Shapes, shapes_of
from propos.clustering import Clustering, spherical_kmeans
from propos.common.errors import InputError
from propos.config import Config, ViewSettings
from propos.data import Source, prefetch
from propos.methods.seeds import generator
from propos.training.embedding import BATCH
from propos.training.features import plain
from propos.training.linear_probe import ProbeSettings, probe_accuracy, train_probe
from propos.training.model import Model

Positions = Int[Tensor, " B"]


@dataclass(frozen=True)
class BackboneFeatures:
    """The features of a source's images by a model's frozen backbone, a batch at a time; none are stored."""

    model: Model
    source: Source
    draws: torch.Generator

    @property
    def width(self) -> int:
        """The number of features of an image."""
        return self.model.encoder.features or self.model.channels * self.model.config.views.size**2

    def of_crops(self, positions: Positions) -> Float[Tensor, "B F"]:
        """Return the features of a random crop of each image, flipped at random, as in the run's views."""
        config, device = self.model.config, self.model.encoder.device
        if self.model.frozen_backbone is not None:
            raise InputError(
                f"--linear paper: {config.start.network} has features of whole images only: use --linear fast"
            )
        assert config.pixels.mean is not None
        assert config.pixels.std is not None
        views = RandomViews(crops_only(config.views), config.pixels.mean, config.pixels.std)
        features = []
        parts = positions.split(BATCH)
        prefetch(self.source, (part.numpy() for part in parts))
        for part in parts:
            images, shapes = _read(self.source, part)
            made = views.make(1, images.to(device), self.draws, shapes.aspects, frames=shapes.frames)
            features += [self._pass(made[0])]
        return torch.cat(features)

    def of_plain_views(self, positions: Positions) -> Iterator[Float[Tensor, "b F"]]:
        """Yield the features of plain views, a batch at a time."""
        fed, parts = self.model.inputs(self.source), positions.split(BATCH)
        prefetch(self.source, (part.numpy() for part in parts))
        for part in parts:
            images, shapes = _read(fed, part)
            yield self._pass(plain(images.to(self.model.encoder.device), self.model.config, shapes))

    def plain_view_table(self, positions: Positions) -> Float[Tensor, "N F"]:
        """Return the features of plain views in one table."""
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


@dataclass(frozen=True)
class LabelledImages:
    """Images of a source and their classes."""

    source: Source
    positions: Positions
    classes: Int[Tensor, " B"]


def probe_draws(config: Config) -> torch.Generator:
    """Return the generator of a linear probe: of its training images and its steps."""
    return generator(config.seed, "linear probe")


def linear_accuracy(
    model: Model,
    learnt: LabelledImages,
    tested: LabelledImages,
    draws: torch.Generator,
    crops: bool = True,
    settings: ProbeSettings | None = None,
) -> float:
    """Train a linear classifier on a model's frozen backbone and return its accuracy on plain views of other images.

    It is trained on a random crop of each image in every epoch, or on fixed features of plain views.
    """
    own = BackboneFeatures(model, learnt.source, generator(model.config.seed, "probe crops"))
    if crops:
        probe = train_probe(
            lambda places: own.of_crops(learnt.positions[places]), own.width, learnt.classes, draws, settings
        )
    else:
        held = own.plain_view_table(learnt.positions)
        probe = train_probe(lambda places: held[places.to(held.device)], own.width, learnt.classes, draws, settings)
    others = BackboneFeatures(model, tested.source, draws)
    return probe_accuracy(probe, others.of_plain_views(tested.positions), tested.classes)


def recluster(embeddings: Float[Tensor, "N D"], clusters: int, config: Config) -> Clustering:
    """Cluster a finished run's embeddings into another number of clusters."""
    draws = generator(config.seed, "evaluation", clusters)
    return spherical_kmeans(embeddings, clusters, config.estep.restarts, draws)


def crops_only(views: ViewSettings) -> ViewSettings:
    """Return settings of views with crops and flips only."""
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
