"""Buffers that a method keeps between steps: part of checkpoints, not of a finished run's weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


class Memory(nn.Module):
    """Named tensors that change during training. `below` are upper bounds of integer tables, checked on resuming."""

    def __init__(self, below: Mapping[str, int] | None = None, **tables: Tensor) -> None:
        super().__init__()
        self.below = dict(below or {})
        for name, table in tables.items():
            self[name] = table

    def __contains__(self, name: str) -> bool:
        return name in self._buffers

    def __getitem__(self, name: str) -> Tensor:
        return self.get_buffer(name)

    def get(self, name: str) -> Tensor | None:
        """Return the table of this name; None if there is none."""
        return self[name] if name in self else None  # noqa: SIM401

    def __setitem__(self, name: str, table: Tensor) -> None:
        self.register_buffer(name, table)

    def fits(self, name: str, table: Tensor) -> bool:
        """Return whether a table read from a checkpoint fits its name: by its shape, where known, and its values."""
        if name in self and (table.shape, table.dtype) != (self[name].shape, self[name].dtype):
            return False
        if name not in self.below or not table.numel():
            return True
        return table.dtype == torch.int64 and int(table.min()) >= -1 and int(table.max()) < self.below[name]


class Queue(Memory):
    """A ring of unit vectors from earlier batches, and the images they are of; -1: no image yet."""

    def __init__(self, size: int, dimension: int, images: int, draw: torch.Generator | None = None) -> None:
        """Start empty, or with a generator, full of random directions."""
        vectors = torch.zeros(size, dimension)
        if draw is not None:
            vectors = F.normalize(torch.randn(size, dimension, generator=draw), dim=1)
        place = torch.zeros((), dtype=torch.long)
        super().__init__({"images": images, "next": size}, vectors=vectors, images=torch.full((size,), -1), next=place)

    @torch.no_grad()
    def push(self, vectors: Float[Tensor, "B D"], images: Int[Tensor, " B"]) -> None:
        """Replace the oldest entries by normalised vectors."""
        size = len(self["images"])
        vectors, images = F.normalize(vectors[-size:], dim=1), images[-size:]
        places = (self["next"] + torch.arange(len(images), device=images.device)) % size
        self["vectors"].index_copy_(0, places, vectors)
        self["images"].index_copy_(0, places, images)
        self["next"].add_(len(images)).remainder_(size)

    def labels(self, labels: Int[Tensor, " N"]) -> Int[Tensor, " Q"]:
        """Return the present labels of the entries' images; -1 where there is none."""
        return labels_of(self["images"], labels)


class Bank(Memory):
    """A unit vector for every image: a moving average of its embeddings."""

    def __init__(self, images: int, dimension: int, momentum: float, draw: torch.Generator) -> None:
        super().__init__(vectors=F.normalize(torch.randn(images, dimension, generator=draw), dim=1))
        self.momentum = momentum

    @torch.no_grad()
    def move(self, images: Int[Tensor, " B"], embeddings: Float[Tensor, "B D"]) -> None:
        """Move the images' rows: v ← m v + (1 − m) z, normalised."""
        bank, step = self["vectors"], 1 - self.momentum
        bank.index_copy_(0, images, F.normalize(self.momentum * bank[images] + step * embeddings, dim=1))


class Neighbours(Memory):
    """The nearest neighbours of every image, nearest first."""

    def __init__(self, images: int) -> None:
        super().__init__({"table": images})
        self._host: tuple[Tensor, Tensor] | None = None

    def host(self) -> Int[Tensor, "N count"]:
        """Return the table on the CPU, where images are read; it is copied once."""
        table = self["table"]
        if self._host is None or self._host[0] is not table:
            self._host = table, table.cpu()
        return self._host[1]


def labels_of(images: Int[Tensor, " B"], labels: Int[Tensor, " N"]) -> Int[Tensor, " B"]:
    """Return the labels of images by position; -1 for positions without one."""
    known = (images >= 0) & (images < len(labels))
    return torch.where(known, labels[images.clamp(0, len(labels) - 1)], -1)
