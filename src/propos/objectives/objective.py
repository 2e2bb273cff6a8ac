"""What every objective is, and a loss over both directions of a pair of views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.outputs import Outputs, Pair

LEAST = 1e-30  # chance, whose logarithm is finite


class Objective(Protocol):
    """A stateless loss: it never gathers, logs or draws.

    One that needs to know the images' clusters says so by a class attribute, `reads_clusters = True`; one that needs
    where clusters lie, whoever is in them, `reads_prototypes = True`; one that needs the backbone's features of the
    batch, `reads_features = True`.
    """

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        ...


def log_chance(chances: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Return the logarithm of chances, finite where there is none."""
    return chances.clamp(min=LEAST).log()


def yes_or_no(chances: Float[Tensor, "*N"], true: Bool[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Return −log of each chance where it should come true, and −log of its opposite where it should not."""
    return -torch.where(true, log_chance(chances), log_chance(1 - chances))


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
