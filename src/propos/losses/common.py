"""Helpers that several losses share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

SMALLEST = 1e-30  # a probability whose logarithm is finite


def log_prob(probabilities: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Return log-probabilities, finite where a probability is 0."""
    return probabilities.clamp(min=SMALLEST).log()


def both_ways(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return two pairs of views as one pair of stacks, for losses that take several pairs and return their mean.

    They compute both in the same operations; `symmetric` calls any loss twice.
    """
    return torch.stack([first[0], second[0]]), torch.stack([first[1], second[1]])


def symmetric(
    loss: Callable[..., Float[Tensor, ""]], first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], *shared: object
) -> Float[Tensor, ""]:
    """Return the mean of a loss over two pairs of views; further arguments are the same for both."""
    return (loss(*first, *shared) + loss(*second, *shared)) / 2
