"""The memory queue: target embeddings of earlier batches and which images they are of."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.methods import QueueSpec
from propos.objectives import Queue
from propos.training.seeds import generator


@dataclass
class Memory:
    """A ring of unit vectors; an image of -1 stands for a place that no image has filled."""

    embeddings: Float[Tensor, "Q D"]
    images: Int[Tensor, " Q"]
    next: int = 0

    @classmethod
    def start(cls, spec: QueueSpec, dimension: int, seed: int, device: torch.device) -> Memory:
        """Return an empty queue, or one full of random directions."""
        embeddings = torch.zeros(spec.size, dimension)
        if spec.random_start:
            draw = torch.randn(spec.size, dimension, generator=generator(seed, "queue"))
            embeddings = F.normalize(draw, dim=1)
        images = torch.full((spec.size,), -1, device=device)
        return cls(embeddings.to(device), images)

    def entries(self, labels: Int[Tensor, " N"]) -> Queue:
        """Return the embeddings with the present pseudo-labels of their images."""
        return Queue(self.embeddings, labels_of(self.images, labels))

    def push(self, embeddings: Float[Tensor, "B D"], images: Int[Tensor, " B"]) -> None:
        """Put unit vectors in, over the oldest."""
        embeddings, images = embeddings[-len(self.images) :], images[-len(self.images) :]
        places = (self.next + torch.arange(len(images), device=images.device)) % len(self.images)
        # A new tensor: the one before may still be part of a graph.
        self.embeddings = self.embeddings.index_copy(0, places, embeddings)
        self.images = self.images.index_copy(0, places, images)
        self.next = (self.next + len(images)) % len(self.images)


def labels_of(images: Int[Tensor, " B"], labels: Int[Tensor, " N"]) -> Int[Tensor, " B"]:
    """Return the labels of images by position; -1 for positions outside those that have one."""
    known = (images >= 0) & (images < len(labels))
    return torch.where(known, labels[images.clamp(0, len(labels) - 1)], -1)
