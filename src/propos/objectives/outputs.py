"""What the networks made of the global batch, and what an objective makes of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

Pair = tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]


@dataclass(frozen=True)
class Queue:
    """Target embeddings of earlier batches, unit vectors, and the present pseudo-labels of their images.

    A label of -1 stands for an entry that no image has filled.
    """

    embeddings: Float[Tensor, "Q D"]
    labels: Int[Tensor, " Q"]


@dataclass(frozen=True)
class Grouping:
    """Another clustering of the images: the batch's labels in it, its prototypes and how tight each cluster is."""

    labels: Int[Tensor, " B"]
    prototypes: Float[Tensor, "M D"]
    concentrations: Float[Tensor, " M"]


@dataclass(frozen=True)
class Outputs:
    """Tensors of both views of the global batch, all raw (not normalised)."""

    projections: Pair  # online
    predictions: Pair  # of projection + σε
    targets: Pair  # without gradient where a target network or stop-gradient makes them
    assignments: tuple[Float[Tensor, "B K"], Float[Tensor, "B K"]] | None = None  # the cluster head's
    queue: Queue | None = None
    groupings: tuple[Grouping, ...] = ()

    def with_queue(self, pair: Pair) -> Pair:
        """Return both views with the queue's embeddings after the batch's."""
        if self.queue is None:
            return pair
        return torch.cat([pair[0], self.queue.embeddings]), torch.cat([pair[1], self.queue.embeddings])

    def labels_with_queue(self, labels: Int[Tensor, " B"]) -> Int[Tensor, " B+Q"]:
        """Return the batch's labels and after them the queue's."""
        return labels if self.queue is None else torch.cat([labels, self.queue.labels])


class Objective(Protocol):
    """A stateless loss: it never gathers, logs or draws."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        ...


def both_directions(
    loss: Callable[[Tensor, Tensor], Float[Tensor, ""]], ours: Pair, theirs: Pair
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return a loss between our first view and their second, and between our second and their first."""
    return loss(ours[0], theirs[1]), loss(ours[1], theirs[0])


def mean_of_directions(
    loss: Callable[[Tensor, Tensor], Float[Tensor, ""]], ours: Pair, theirs: Pair
) -> Float[Tensor, ""]:
    """Return the mean of a loss over both directions."""
    forward, backward = both_directions(loss, ours, theirs)
    return (forward + backward) / 2
