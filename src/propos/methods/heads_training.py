"""Helpers of methods that train cluster heads on a trained network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from propos.clustering import nearest_neighbours
from propos.methods.images import AllImages
from propos.networks import ClusterHeads, Encoder, Neighbours

Confidence = Annotated[float, Field(ge=0.0, lt=1.0)]  # the probability above which an assignment becomes a label


class Tables(Neighbours):
    """Tables of all images that a stage computes; their shapes are known from the start, so that checkpoints fit.

    Nothing is allocated before they are computed. The table named `table` holds the images' neighbours.
    """

    def __init__(
        self, images: int, below: Mapping[str, int] | None = None, **rows: tuple[torch.dtype, *tuple[int, ...]]
    ):
        """Declare the type and shape of each table's rows, and upper bounds of integers, as `Memory` has them."""
        super().__init__(images)
        self.below |= below or {}
        self.shapes = {name: (dtype, (images, *shape)) for name, (dtype, *shape) in rows.items()}

    def fits(self, name: str, table: Tensor) -> bool:
        """Return whether a table read from a checkpoint fits its name."""
        return self.shapes.get(name) == (table.dtype, tuple(table.shape)) and super().fits(name, table)


def heads_training(lr: float) -> dict[str, Any]:
    """Return the `train` settings of such a stage: Adam at a constant rate."""
    return {"optimiser": "adam", "lr": lr, "schedule": "constant", "warmup": 0, "weight_decay": 1e-4}


def neighbours_and_itself(points: Float[Tensor, "N D"], count: int, images: AllImages) -> Int[Tensor, "n count+1"]:
    """Return the nearest neighbours of this process's images by the cosine of unit vectors, the image itself first."""
    others = nearest_neighbours(points, min(count, len(points) - 1), images.local)
    own = torch.arange(images.local.start, images.local.stop, device=others.device)
    return torch.cat([own[:, None], others], dim=1)


def features_and_probabilities(
    images: AllImages, embedder: Encoder, online: Encoder, heads: ClusterHeads
) -> tuple[Float[Tensor, "N F"], Float[Tensor, "N H K"]]:
    """Return the embedder's features of all images, and every head's probabilities by the online backbone."""

    def both(view: Tensor) -> Tensor:
        features = embedder.backbone(view)
        seen = features if embedder is online else online.backbone(view)
        return torch.cat([features.float(), heads(seen).softmax(dim=-1).flatten(1)], dim=1)

    rows = images.apply(both)
    features, probabilities = rows[:, : embedder.features], rows[:, embedder.features :]
    return features, probabilities.unflatten(1, (len(heads.each), -1))


def sum_over_heads(heads: ClusterHeads, losses: Mapping[str, Float[Tensor, " H"]]) -> dict[str, Float[Tensor, ""]]:
    """Record the loss of each head, by which one is chosen, and return the terms summed over the heads."""
    heads.record(torch.stack(list(losses.values())).sum(dim=0))
    return {name: of_heads.sum() for name, of_heads in losses.items()}
