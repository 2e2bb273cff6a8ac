"""Weighted k-nearest-neighbour classification of embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import nearest_in_blocks
from propos.common.errors import InputError

NEIGHBOURS = 20
TEMPERATURE = 0.07


def nearest_classes(
    bank: Float[Tensor, "N D"],
    classes: Int[Tensor, " N"],
    queries: Float[Tensor, "Q D"],
    neighbours: int = NEIGHBOURS,
    leave_one_out: bool = False,
) -> Int[Tensor, " Q"]:
    """Return the class each query's nearest neighbours in the bank vote for, a vote weighing exp(cosine / 0.07).

    With `leave_one_out` the queries are the bank's own images in their order, and none is its own neighbour.
    """
    others = len(bank) - leave_one_out
    if not 1 <= neighbours <= others:
        raise InputError(f"k-NN: {neighbours} neighbours, but there are {others} other images: choose 1 to {others}")
    bank, queries = F.normalize(bank, dim=1), F.normalize(queries, dim=1)
    blocks = nearest_in_blocks(queries, bank, neighbours, 0 if leave_one_out else None)
    return torch.cat([_vote(nearest, classes[places], int(classes.max()) + 1) for nearest, places in blocks])


def _vote(
    nearest: Float[Tensor, "q neighbours"], classes: Int[Tensor, "q neighbours"], count: int
) -> Int[Tensor, " q"]:
    """Return the class that each query's neighbours vote for."""
    # Relative to the nearest, so that no weight is ever too small to count.
    weights = torch.exp((nearest - nearest[:, :1]) / TEMPERATURE)
    votes = weights.new_zeros((len(nearest), count))
    return votes.scatter_add_(1, classes, weights).argmax(dim=1)
