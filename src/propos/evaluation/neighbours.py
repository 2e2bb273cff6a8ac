"""Weighted k-nearest-neighbour classification of embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.points import spans
from propos.errors import InputError

NEIGHBOURS = 20
TEMPERATURE = 0.07
CHUNK_VALUES = 2**24  # cosines held at a time


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
    return torch.cat(
        [
            _vote(queries[span], bank, classes, neighbours, span.start if leave_one_out else None)
            for span in spans(len(queries), max(1, CHUNK_VALUES // len(bank)))
        ]
    )


def _vote(
    queries: Float[Tensor, "q D"],
    bank: Float[Tensor, "N D"],
    classes: Int[Tensor, " N"],
    neighbours: int,
    first: int | None,
) -> Int[Tensor, " q"]:
    """Return the winners for some queries; from `first` on, if given, they are the bank's and leave themselves out."""
    cosines = queries @ bank.T
    if first is not None:
        cosines.diagonal(first).fill_(-torch.inf)
    nearest, places = cosines.topk(neighbours, dim=1)
    # Relative to the nearest, so that no weight is ever too small to count.
    weights = torch.exp((nearest - nearest[:, :1]) / TEMPERATURE)
    votes = weights.new_zeros((len(queries), int(classes.max()) + 1))
    return votes.scatter_add_(1, classes[places], weights).argmax(dim=1)
