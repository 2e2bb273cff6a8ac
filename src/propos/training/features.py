"""The inputs of the network: a source's images, or a frozen pretrained network's features of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from torch import Tensor

from propos.augment import Shapes, plain_view, shapes_of
from propos.common.errors import InputError, Interrupted
from propos.common.progress import ShowTask
from propos.config import Config
from propos.data import (
    Features,
    Selection,
    Skipped,
    Source,
    Statistics,
    StreamedSource,
    cached_features,
    closing_source,
    prefetch,
    readable,
)
from propos.networks import FrozenBackbone, Weights, network_of, read_pretrained, trunk_features
from propos.networks.frozen_backbone import PART

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


@dataclass
class ComputedFeatures(FeatureSource):
    """Features that are computed when they are read, while the next images are decoded."""

    middle: int = 0  # the side of the middle squares that the network takes of streamed images; 0 if it takes the whole

    def prefetch(self, batches: Iterable[Int[np.ndarray, " B"]]) -> None:
        """Announce the next batches to a source that decodes them."""
        parts = (part for positions in batches for part in in_parts(positions))
        if isinstance(self.images, StreamedSource):
            self.images.prefetch(parts, self.middle)
        else:
            prefetch(self.images, parts)

    def readable(self, positions: Int[np.ndarray, " B"]) -> Bool[np.ndarray, " B"]:
        """Return a mask of the images that could be decoded."""
        return readable(self.images, positions)

    def close(self) -> None:
        """Stop decoding."""
        with closing_source(self.images):
            pass


def in_parts(positions: Int[np.ndarray, " B"]) -> Iterator[Int[np.ndarray, " b"]]:
    """Yield positions in the parts that a frozen network takes at a time, so that few images are in memory."""
    for start in range(0, len(positions), PART):
        yield positions[start : start + PART]


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
    if start.sha256 not in (None, weights.sha256) or start.description != weights.network.description:
        where = start.weights or f"the installed weights of {start.network}"
        raise InputError(f"{where}: are not the ones that the run started with (SHA-256 {str(start.sha256)[:12]}…)")
    return weights


def as_features(frozen_backbone: FrozenBackbone | None, source: Source, device: torch.device) -> Source:
    """Return a source of a frozen network's features, computed on demand; without a network, the source itself."""
    if frozen_backbone is None or isinstance(source, FeatureSource):
        return source
    frozen_backbone = frozen_backbone.to(device)
    middle = frozen_backbone.middle_of(source.side) if isinstance(source, StreamedSource) else 0

    def see(positions: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B F"]:
        parts = []
        for part in in_parts(positions):
            pixels = source.batch(part, middle) if isinstance(source, StreamedSource) else source.batch(part)
            images = torch.from_numpy(pixels).to(device)
            parts.append(frozen_backbone(images, shapes_of(source, part)).cpu().numpy())
        return np.concatenate(parts)

    return ComputedFeatures(source, see, frozen_backbone.features, middle=middle)


def prepare_inputs(
    config: Config,
    source: Source,
    device: torch.device,
    show_task: ShowTask,
    stop: Callable[[], bool] = lambda: False,
    find: Callable[..., Features] = cached_features,
) -> Source:
    """Return the inputs of the settings' network: the images, or a pretrained network's features of them, cached.

    `find` is `shared_features` where all processes call this.
    """
    frozen_backbone = frozen_backbone_of(config)
    if frozen_backbone is None:
        return source
    return features_of(frozen_backbone, source, device, show_task, stop, find)


def features_of(
    frozen_backbone: FrozenBackbone,
    source: Source,
    device: torch.device,
    show_task: ShowTask,
    stop: Callable[[], bool] = lambda: False,
    find: Callable[..., Features] = cached_features,
) -> FeatureSource:
    """Return a frozen network's features of a source, cached: computed once, whatever they are used for later.

    A stop loses at most a batch.
    """
    given, source = source, source.source if isinstance(source, Selection) else source
    seen = as_features(frozen_backbone, source, device)
    batches = [np.arange(start, min(start + BATCH, len(source))) for start in range(0, len(source), BATCH)]

    announced = False

    def see(positions: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B F"]:
        nonlocal announced
        if not announced:  # only images that are not cached yet are read
            prefetch(seen, batches[int(positions[0]) // BATCH :])
            announced = True
        if stop():
            raise Interrupted("stopped while features were computed")
        return np.asarray(seen.batch(positions), np.float32)

    with show_task(f"Computing features with {frozen_backbone.weights.network.name}") as progress:
        known = frozen_backbone.cache_key(device)
        found = find(source, known, frozen_backbone.features, batches, see, progress)
    return _of_readable(found, source, given, frozen_backbone.features)


def _of_readable(found: Features, source: Source, given: Source, width: int) -> FeatureSource:
    """Return the features of the given images, all or some of a source's, without those that could not be read."""
    if not found.skipped and given is source:
        return FeatureSource(source, found.rows, width)
    listed = {skipped.path for skipped in source.skipped}
    source.skipped += [skipped for skipped in found.skipped if skipped.path not in listed]
    damaged = {skipped.path for skipped in found.skipped}
    if len(damaged) == len(source):
        first = found.skipped[0]
        raise InputError(f"{source.name}: no image in it can be read: {first.path} ({first.reason})")
    good = np.array([name not in damaged for name in source.image_names()])
    wanted = given.positions if isinstance(given, Selection) else np.arange(len(source))
    chosen = wanted[good[wanted]]
    places = (np.cumsum(good) - 1)[chosen]  # among the images that could be read
    return FeatureSource(Selection(source, chosen), lambda positions: found.rows(places[positions]), width)


def input_channels(config: Config) -> int:
    """Return the number of channels, or of features, of the network's inputs."""
    if not config.start.has_frozen_part:
        assert config.pixels.mean is not None
        return len(config.pixels.mean)
    network = network_of(config.start)
    return trunk_features(network) if config.start.learns == "last" else network.features
