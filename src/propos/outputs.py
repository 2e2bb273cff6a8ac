"""What the networks make of a batch: written by networks, completed by the training step, read by objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Pair = tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]
Assigned = tuple[Float[Tensor, "B *H K"], Float[Tensor, "B *H K"]]
PAIRS = (
    "projections",
    "predictions",
    "targets",
    "assignments",
    "target_assignments",
    "over_assignments",
    "features",
    "pixels",
    "reconstructions",
    "places",
)


@dataclass(frozen=True)
class Queue:
    """Target embeddings of earlier batches, unit vectors, and the present pseudo-labels of their images.

    A label of -1 stands for an entry that no image has filled.
    """

    embeddings: Float[Tensor, "Q D"]
    labels: Int[Tensor, " Q"]


@dataclass(frozen=True)
class Bank:
    """An embedding of every image, unit vectors as earlier epochs left them, and the rows of the batch's images."""

    embeddings: Float[Tensor, "N D"]
    images: Int[Tensor, " B"]
    clusterings: tuple[Int[Tensor, " n"], ...] = ()  # the further ones, of the images that are clustered: the first


@dataclass(frozen=True)
class Grouping:
    """Another clustering of the images: the batch's labels in it, its prototypes and how tight each cluster is."""

    labels: Int[Tensor, " B"]
    prototypes: Float[Tensor, "M D"]
    concentrations: Float[Tensor, " M"]


@dataclass(frozen=True)
class CentreSet:
    """One of several sets of cluster centres that are learnt, and which of them the batch's images belong to."""

    now: Float[Tensor, "K D"]  # unit vectors, with a gradient
    before: Float[Tensor, "K D"]  # as the epoch began
    labels: Int[Tensor, " B"]  # the nearest by now, as clusters are held to a size
    earlier: Int[Tensor, " B"]  # the nearest when an image was last seen before; if never, by now


@dataclass(frozen=True)
class Outputs:
    """Tensors of both views of the global batch, all raw (not normalised), and what objectives read beside them."""

    projections: Pair  # online
    predictions: Pair  # of projection + σε
    targets: Pair  # without gradient where a target network or stop-gradient makes them
    assignments: Assigned | None = None  # the cluster head's, or each head's
    target_assignments: Assigned | None = None  # those of the heads' moving averages
    over_assignments: Assigned | None = None  # the over-clustering head's, or each such head's
    head_prototypes: Float[Tensor, "K D"] | None = None  # the cluster head's, unit vectors without gradient
    shares: Float[Tensor, "H K"] | None = None  # of the images, lately, in each cluster, by the moving averages
    features: Pair | None = None  # the online backbone's, where a term reads them
    pixels: Pair | None = None  # of the views, as far as a decoder is to make them again
    reconstructions: Pair | None = None  # what it makes of them
    places: tuple[Float[Tensor, "B P C"], Float[Tensor, "B P C"]] | None = None  # of the first stage's maps of them
    discriminator: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None  # which scores these beside what is said
    again: Float[Tensor, "B *H K"] | None = None  # the cluster heads' of one more view of the images, if there is one
    again_projections: Float[Tensor, "B D"] | None = None  # online, of one more view of the images, if there is one
    partners: Int[Tensor, " B"] | None = None  # the images that the second views are of, where they are neighbours
    head: int = 0  # of several, the one that the assignments are of, once there are its alone
    chosen: Int[Tensor, ""] | None = None  # which of several heads answers
    clusters: int | None = None  # how many there are, where the step knows
    prototypes: Float[Tensor, "K D"] | None = None  # of all clusters, as the last E-step left them, unit vectors
    epoch: int = 0  # of the stage
    queue: Queue | None = None
    bank: Bank | None = None
    groupings: tuple[Grouping, ...] = ()
    centres: tuple[CentreSet, ...] = ()
    prepared: Mapping[str, Tensor] = field(default_factory=dict)  # the batch's rows of what the stage computed first

    def pairs(self) -> dict[str, Pair]:
        """Return what there is of both views, by name."""
        named = {name: getattr(self, name) for name in PAIRS}
        return {name: pair for name, pair in named.items() if pair is not None}

    def with_pairs(self, pairs: Mapping[str, Pair]) -> Outputs:
        """Return these outputs with other tensors of both views."""
        changes: dict[str, Any] = dict(pairs)
        return replace(self, **changes)

    def of_heads(self) -> list[Outputs]:
        """Return these outputs once for each cluster head, with that head's assignments alone."""
        assert self.assignments is not None
        first, second = self.assignments
        if first.ndim == 2:
            return [self]
        heads = zip(first.unbind(dim=1), second.unbind(dim=1), strict=True)
        again = [None] * first.shape[1] if self.again is None else self.again.unbind(dim=1)
        return [
            replace(self, assignments=pair, again=again[head], head=head, chosen=None)
            for head, pair in enumerate(heads)
        ]

    def of_chosen_head(self) -> Outputs:
        """Return these outputs with the assignments of the head that answers alone."""
        if self.chosen is None or self.assignments is None:
            return self
        first, second = (view.index_select(1, self.chosen[None])[:, 0] for view in self.assignments)
        return replace(self, assignments=(first, second), chosen=None)

    def with_queue(self, pair: Pair) -> Pair:
        """Return both views with the queue's embeddings after the batch's."""
        if self.queue is None:
            return pair
        return torch.cat([pair[0], self.queue.embeddings]), torch.cat([pair[1], self.queue.embeddings])

    def labels_with_queue(self, labels: Int[Tensor, " B"]) -> Int[Tensor, " B+Q"]:
        """Return the batch's labels and after them the queue's."""
        return labels if self.queue is None else torch.cat([labels, self.queue.labels])
