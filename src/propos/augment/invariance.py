"""Tests of which flips and turns preserve the kind of an image, from the images themselves.

A mirrored shirt still looks like other shirts; a mirrored 2 looks like a 5, or like nothing. So a sample of images is
grouped by pixels, and the nearest neighbour of each image is found before and after the change: how often is it in the
image's own group, and how much farther away is it? Labels are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.augment.frames import shapes_of
from propos.augment.views import plain_view
from propos.clustering import spherical_kmeans
from propos.config import VIEW_PRESETS
from propos.data import Source

FEWEST = 100  # images; with fewer, the result would be random
COMPARED, ASKED = 2_000, 600
SIDE = 16  # larger images are resized to it
GROUPS = 20
NOTHING = 1e-4  # a distance that rounding makes
# Where the lines lie between written characters, things, photographs and textures: docs/views.md.
STAYS, FARTHER, AS_WELL = 0.65, 1.1, 0.85


@dataclass(frozen=True)
class Change:
    """The effect of one change on a sample of images."""

    stays: float  # how often changed images stay near their own group, relative to unchanged ones
    farther: float  # distance to the nearest other image, relative to the unchanged image's: third quartile

    @property
    def looks_natural(self) -> bool:
        """Return whether changed images are as near to the others as those are to each other."""
        return self.farther <= FARTHER


@dataclass(frozen=True)
class Invariance:
    """The effects of mirroring, turning upside down, and quarter turns on a sample of images."""

    mirrored: Change
    upside_down: Change
    turned: Change

    @property
    def flip(self) -> float:
        """The probability of mirroring a view."""
        return 0.5 if self.mirrored.looks_natural or self.mirrored.stays >= STAYS else 0.0

    @property
    def turns(self) -> Literal[1, 2, 4]:
        """The number of orientations to show images in; each further one must fit as well as mirroring."""
        usual = [self.flip > 0 and self._as_usual(change) for change in (self.upside_down, self.turned)]
        return 4 if all(usual) else 2 if usual[0] else 1

    def _as_usual(self, change: Change) -> bool:
        return change.looks_natural and change.stays >= AS_WELL * self.mirrored.stays

    def settings(self, channels: int) -> dict[str, Any]:
        """Return settings of views that suit such images.

        Greyscale images that change their kind when mirrored are taken for characters: cropped less, rotated a little.
        """
        views: dict[str, Any] = {"views.flip": self.flip, "views.turns": self.turns}
        if self.flip == 0 and channels == 1:
            views |= {f"views.{key}": VIEW_PRESETS["digits"][key] for key in ("crop_scale", "rotation")}
        return views

    def __str__(self) -> str:
        """Return what was found, in words."""
        share = f"{min(self.mirrored.stays, 1):.0%} of flipped images stay near their own kind"
        if self.flip == 0:
            return f"horizontal flips disabled: only {share}"
        flips = {1: "horizontal flips", 2: "horizontal and vertical flips", 4: "flips and quarter turns"}
        return f"{flips[self.turns]} enabled: {share}"


def measure_invariance(source: Source) -> Invariance | None:
    """Test changes on a sample of the images; None if there are too few images."""
    if len(source) < FEWEST:
        return None
    draw = np.random.default_rng(0)  # the same for every seed of the run
    images = _looked_at(source, np.sort(draw.permutation(len(source))[:COMPARED]))
    asked = torch.from_numpy(draw.permutation(len(images))[:ASKED])
    neighbourhood = _Neighbourhood(images, asked)
    as_they_are = neighbourhood.of(lambda pixels: pixels)
    if as_they_are.stays == 0:
        return None

    def tried(change: Callable[[Tensor], Tensor]) -> Change:
        there = neighbourhood.of(change)
        farther = (there.distances / as_they_are.distances.clamp(min=NOTHING)).quantile(0.75)
        return Change(there.stays / as_they_are.stays, farther.item())

    return Invariance(
        mirrored=tried(lambda pixels: pixels.flip(-1)),
        upside_down=tried(lambda pixels: pixels.flip(-2)),
        turned=tried(lambda pixels: pixels.rot90(1, (-2, -1))),
    )


def _looked_at(source: Source, positions: Int[np.ndarray, " N"]) -> Float[Tensor, "N C S S"]:
    """Return the images, small."""
    size, nothing = min(SIDE, max(source.height, source.width)), (0.0,) * source.channels
    one = (1.0,) * source.channels
    parts = np.array_split(positions, max(1, len(positions) // 256))

    def seen(part: Int[np.ndarray, " n"]) -> Float[Tensor, "n C S S"]:
        return plain_view(torch.from_numpy(source.batch(part)), size, nothing, one, shapes=shapes_of(source, part))

    return torch.cat([seen(part) for part in parts])


@dataclass(frozen=True)
class _Found:
    """Return how often the nearest image is of the same group, and its distance."""

    stays: float
    distances: Float[Tensor, " A"]


class _Neighbourhood:
    """A sample of images, their groups, and the images that are tested."""

    def __init__(self, images: Float[Tensor, "N C S S"], asked: Int[Tensor, " A"]) -> None:
        self._images, self._asked = images, asked
        self._mean = images.mean(dim=0)
        self._directions = self._directions_of(images)
        groups = min(GROUPS, len(images) // 8)
        found = spherical_kmeans(self._directions, groups, 3, torch.Generator().manual_seed(0))
        self._groups = found.labels

    def of(self, change: Callable[[Tensor], Tensor]) -> _Found:
        """Look up the nearest other image of each changed one."""
        changed = self._directions_of(change(self._images[self._asked]))
        cosines = changed @ self._directions.T
        cosines[torch.arange(len(self._asked)), self._asked] = -2.0  # itself
        nearest, places = cosines.max(dim=1)
        stays = (self._groups[places] == self._groups[self._asked]).float().mean().item()
        return _Found(stays, (2 - 2 * nearest).clamp(min=0).sqrt())

    def _directions_of(self, images: Float[Tensor, "N C S S"]) -> Float[Tensor, "N D"]:
        return F.normalize((images - self._mean).flatten(1), dim=1)
