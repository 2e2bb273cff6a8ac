"""The images of a step, and their views on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from propos.augment import Frames, RandomViews, Shapes, StrongViews, shapes_of
from propos.config import Config
from propos.data import Source
from propos.distributed import share
from propos.distributed.transfer import send
from propos.methods.base import ViewKind
from propos.methods.seeds import generator
from propos.networks import Neighbours, labels_of
from propos.training.features import plain
from propos.training.prefetch import read


@dataclass
class StepBatch:
    """A batch of a step (`methods.Batch`); each process computes the views of its share."""

    config: Config
    source: Source
    device: torch.device
    positions: Int[Tensor, " B"]  # on the host
    seed: int
    when: tuple[int, int]  # the step of the stage, and which of the batches that accumulate
    known: Int[Tensor, " N"]  # the clusters of all images

    def __post_init__(self) -> None:
        self.images = send(self.positions, self.device)
        self.labels = labels_of(self.images, self.known)
        self.clustered = int(self.positions[0]) < len(self.source)

    def views(self, **changes: Any) -> tuple[Float[Tensor, "b ..."], Float[Tensor, "b ..."]]:
        """Return two random views of each image."""
        return self._random(self.when, changes)

    def view(self, kind: ViewKind, number: int = 0, **changes: Any) -> Float[Tensor, "b ..."]:
        """Return one view of each image."""
        when, place = (self.when, number) if number < 2 else ((*self.when, 1), 0)
        if kind == "random":
            return self._random(when, changes)[place]
        images, aspects, frames = self._read()
        local = share(len(self.positions))
        shapes = Shapes(None if aspects is None else aspects[local], frames)
        if kind == "plain":
            return plain(images, self.config, shapes)
        draw = generator(self.seed, "strong", place, *when)
        views = self.config.views.model_copy(update=changes)
        strong = StrongViews(views, self.config.strong, *_pixels(self.config))
        return strong(images, draw, (len(self.positions), local), shapes)

    def partners(self, neighbours: Neighbours) -> StepBatch:
        """Return the batch of one random neighbour of each image."""
        table, count = neighbours.host(), len(self.positions)
        drawn = torch.randint(table.shape[1], (count,), generator=generator(self.seed, "neighbours", *self.when))
        return replace(self, positions=table[self.positions, drawn])

    def rows(self, table: Tensor) -> Tensor:
        """Return the rows of this process's images."""
        return table[send(self.positions[share(len(self.positions))], table.device)]

    def _random(
        self, when: tuple[int, ...], changes: dict[str, Any]
    ) -> tuple[Float[Tensor, "b ..."], Float[Tensor, "b ..."]]:
        images, aspects, frames = self._read()
        views = RandomViews(self.config.views.model_copy(update=changes), *_pixels(self.config))
        local = len(self.positions), share(len(self.positions))
        return views(images, generator(self.seed, "views", *when), aspects, local, frames)

    def _read(self) -> tuple[UInt8[Tensor, "b C H W"], Float[Tensor, " B"] | None, Frames | None]:
        """Return this process's images, the aspects of the whole batch, and the frames of this process's images."""
        places, source = self.positions.numpy(), self.source
        local = share(len(places))
        images = read(source, places[local], self.device)
        if source.unlabelled is not None and not self.clustered:
            source, places = source.unlabelled, places - len(source)
        whole = shapes_of(source, places)
        return images, whole.aspects, None if whole.frames is None else whole.frames.of(local)


def _pixels(config: Config) -> tuple[tuple[float, ...], tuple[float, ...]]:
    assert config.pixels.mean is not None
    assert config.pixels.std is not None
    return config.pixels.mean, config.pixels.std
