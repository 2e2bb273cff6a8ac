"""Clusterings of all images into several numbers of clusters, and their contrast, for PCL, BYOL + PCL and IFND."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from propos.clustering import concentrations
from propos.common.errors import InputError
from propos.losses import counts_in_batch, proto_nce
from propos.methods.base import StepContext
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Start
from propos.networks import Memory, labels_of

Numbers = Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1)]


class Negatives(NamedTuple):
    """The number of prototypes to draw of those that the batch has no image of, and the random numbers to draw by."""

    number: int
    draws: Float[Tensor, "B C"]


class Clusterings(Memory):
    """Clusterings of all images into different numbers of clusters: labels, centres and concentrations of each."""

    def __init__(self, numbers: tuple[int, ...], images: int, dimension: int) -> None:
        super().__init__({f"labels_{place}": number for place, number in enumerate(numbers)})
        self.numbers = numbers
        for place, number in enumerate(numbers):
            self[f"labels_{place}"] = torch.full((images,), -1)
            self[f"centres_{place}"] = torch.zeros(number, dimension)
            self[f"concentrations_{place}"] = torch.ones(number)

    def find(self, clustered: Clustered, temperature: float) -> None:
        """Cluster the present embeddings, starting from the last centres where there are any."""
        points, known = clustered.points, bool((self["labels_0"] >= 0).any())
        for place, number in enumerate(self.numbers):
            labels, centres = clustered.kmeans(number, place, points, self[f"centres_{place}"] if known else None)
            found = concentrations(points, labels, centres, temperature, sharded=clustered.sharded)
            whole = clustered.gather_labels(labels)
            self[f"labels_{place}"] = whole
            self[f"centres_{place}"] = centres.to(whole.device)
            self[f"concentrations_{place}"] = found.to(whole.device)

    def draws(self, ctx: StepContext, rows: Float[Tensor, "b D"]) -> list[Float[Tensor, "b C"]]:
        """Return this process's part of random numbers, at least one for each prototype of the largest clustering."""
        each = -(-max(self.numbers) // len(rows))
        return ctx.noise_like(rows.detach()[:, :1].expand(-1, each), sigma=1.0)

    def contrast(
        self, images: Int[Tensor, " B"], *views: Float[Tensor, "B D"], negatives: Negatives | None = None
    ) -> Float[Tensor, ""]:
        """Return ProtoNCE summed over the views and averaged over the clusterings; by default with all prototypes."""
        losses = []
        for place in range(len(self.numbers)):
            labels = labels_of(images, self[f"labels_{place}"])
            prototypes = self[f"centres_{place}"], self[f"concentrations_{place}"]
            counts = None
            if negatives is not None:
                counts = counts_in_batch(labels, negatives.draws.flatten()[: self.numbers[place]], negatives.number)
            losses += [proto_nce(view, *prototypes, labels, counts) for view in views]
        return sum(losses[1:], start=losses[0]) / len(self.numbers)


def starts_after_warmup(weight: float, setup: Setup) -> dict[str, Start]:
    """Return the start of ProtoNCE, unless its weight is 0."""
    return {"prototypes": Start(setup.train.warmup, "lower", "train.warmup")} if weight else {}


def check_clusters(numbers: tuple[int, ...], key: str, distinct: Callable[[int], int]) -> None:
    """Refuse clusterings of more clusters than there are different images; `key` is the setting."""
    finest = max(numbers)
    different = distinct(finest)
    if different < finest:
        raise InputError(
            f"{key} makes {finest} clusters: only {different} images differ; set it smaller (--set {key}=…)"
        )
