"""An objective of assignments, asked of images and their nearest in the batch or among all images (NNM)."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import Objective
from propos.outputs import Assigned, Outputs


def nearest_in_batch(features: Float[Tensor, "B F"]) -> Int[Tensor, " B"]:
    """Return for each image of a batch the other one whose features are nearest by Euclidean distance."""
    features = features.detach()
    squares = features.square().sum(dim=1)
    distances = squares - 2 * features @ features.T  # of each row, less what is the same for all others
    return distances.fill_diagonal_(torch.inf).argmin(dim=1)


def local_pairs(outputs: Outputs) -> Assigned:
    """Return whom to put together: images with their neighbours, their other views with their nearest in the batch."""
    assert outputs.assignments is not None
    assert outputs.again is not None
    assert outputs.features is not None
    image, neighbour = outputs.assignments
    return torch.cat([image, outputs.again]), torch.cat([neighbour, image[nearest_in_batch(outputs.features[0])]])


class NearestInBatch:
    """An objective of the first view with the second, and of one more view with the first of the nearest image."""

    reads_features = True

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return self.objective(replace(outputs, assignments=local_pairs(outputs)), labels)


class NearestOfAll:
    """The same objective of all four with where the head put, lately, the nearest of all images.

    The stage refreshes `NearestAnswers`. No gradient reaches them.
    """

    reads_features = True

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        ours = torch.cat(local_pairs(outputs))
        theirs = outputs.prepared["nearest answers"][:, outputs.head].repeat(4, 1)
        return self.objective(replace(outputs, assignments=(ours, theirs)), labels)
