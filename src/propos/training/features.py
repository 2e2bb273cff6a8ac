"""The inputs of the network: a source's images, or a frozen pretrained network's features of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

from propos.augment import Shapes, plain_view, shapes_of
from propos.common.errors import InputError, Interrupted
from propos.common.progress import ShowTask
from propos.config import Config
from propos.data import Skipped, Source, Statistics, cached_features, prefetch
from propos.networks import FrozenBackbone, Weights, find_pretrained, read_pretrained, trunk_features

BATCH = 128  # images whose features are written to the cache at once


@dataclass
class FeatureSource:
    """A source whose images are vectors of features, for the learner like any other images."""

    images: Source
    rows: Callable[[Int[np.ndarray, " B"]], Float[np.ndarray, "B F"]]
    channels: int  # number of features
    height = width = 1
    aspects: Float[np.ndarray, " N"] | None = None
    frames: Int[np.ndarray, "N 2"] | None = None
    statistics: Statistics | None = None
    unlabelled: Source | None = None

    def __post_init__(self) -> None:
        self.name, self.notes = self.images.name, self.images.notes
        self.black, self.white = self.images.black, self.images.white
        self.labels: Shaped[np.ndarray, " N"] | None = self.images.labels

    @property
    def skipped(self) -> list[Skipped]:
        """Files that were skipped."""
        return self.images.skipped

    @skipped.setter
    def skipped(self, skipped: list[Skipped]) -> None:
        self.images.skipped = skipped

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, positions: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B F"]:
        """Return the features of the images at these positions."""
        return self.rows(positions)

    def image_names(self) -> Sequence[str]:
        """Return the names of the images."""
        return self.images.image_names()


def plain(
    batch: UInt8[Tensor, "B C H W"] | Float[Tensor, "B F"], config: Config, shapes: Shapes
) -> Float[Tensor, "B ..."]:
    """Return the plain view of a batch: images resized and normalised, features unchanged."""
    if batch.is_floating_point():
        return batch
    assert config.pixels.mean is not None
    assert config.pixels.std is not None
    views = config.views
    return plain_view(batch, views.size, config.pixels.mean, config.pixels.std, views.plain, shapes)


def frozen_backbone_of(config: Config) -> FrozenBackbone | None:
    """Return the frozen pretrained network of the settings, if they have one."""
    if not config.start.has_frozen_part:
        return None
    return FrozenBackbone(weights_of_start(config), config.start.learns == "last")


def weights_of_start(config: Config) -> Weights:
    """Return the weights of the settings' pretrained network; they must be the ones that the run started with."""
    start = config.start
    weights = read_pretrained(start.network, start.weights)
    if start.sha256 not in (None, weights.sha256):
        where = start.weights or f"the installed weights of {start.network}"
        raise InputError(f"{where}: are not the ones that the run started with (SHA-256 {str(start.sha256)[:12]}…)")
    return weights


def as_features(frozen_backbone: FrozenBackbone | None, source: Source, device: torch.device) -> Source:
    """Return a source of a frozen network's features, computed on demand; without a network, the source itself."""
    if frozen_backbone is None or isinstance(source, FeatureSource):
        return source
    frozen_backbone = frozen_backbone.to(device)

    def see(positions: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B F"]:
        images = torch.from_numpy(source.batch(positions)).to(device)
        features: Float[np.ndarray, "B F"] = frozen_backbone(images, shapes_of(source, positions)).cpu().numpy()
        return features

    return FeatureSource(source, see, frozen_backbone.features)


def prepare_inputs(
    config: Config,
    source: Source,
    device: torch.device,
    show_task: ShowTask,
    stop: Callable[[], bool] = lambda: False,
    frozen_backbone: FrozenBackbone | None = None,
) -> Source:
    """Return the inputs of the settings' network: the images, or a pretrained network's features of them, cached.

    Features are computed once, whatever they are used for later; a stop loses at most a batch. `frozen_backbone` is the
    pretrained network of a finished run.
    """
    frozen_backbone = frozen_backbone or frozen_backbone_of(config)
    if frozen_backbone is None:
        return source
    seen = as_features(frozen_backbone, source, device)
    batches = [np.arange(start, min(start + BATCH, len(source))) for start in range(0, len(source), BATCH)]

    announced = False

    def see(positions: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B F"]:
        nonlocal announced
        if not announced:  # only images that are not cached yet are read
            prefetch(source, batches[int(positions[0]) // BATCH :])
            announced = True
        if stop():
            raise Interrupted("stopped while features were computed")
        return np.asarray(seen.batch(positions), np.float32)

    with show_task(f"Looking at images with {frozen_backbone.weights.network.name}") as progress:
        part = " below its last stage" if config.start.learns == "last" else ""
        weights, backend = frozen_backbone.weights, frozen_backbone.backend(device)
        known = f"{weights.network.name}{part} {weights.sha256} {backend}"
        rows = cached_features(source, known, frozen_backbone.features, batches, see, progress)
    return FeatureSource(source, rows, frozen_backbone.features)


def input_channels(config: Config) -> int:
    """Return the number of channels, or of features, of the network's inputs."""
    if not config.start.has_frozen_part:
        assert config.pixels.mean is not None
        return len(config.pixels.mean)
    assert config.start.network is not None
    network = find_pretrained(config.start.network)
    return trunk_features(network) if config.start.learns == "last" else network.features
