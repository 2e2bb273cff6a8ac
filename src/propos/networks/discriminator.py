"""A discriminator: whether what is said of an image goes with what the network's first layers see, place by place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

FINEST = 16  # places a side, at most


@dataclass(frozen=True)
class Discriminating:
    """The width of a discriminator's two hidden layers."""

    hidden: int


class Discriminator(nn.Module):
    """Layers without a bias that score a place of an image's map beside what a cluster head says of an image.

    The first layer reads both side by side. It is the sum of one that reads the place and one that reads what is said,
    so that each is made once, in however many pairs it stands.
    """

    def __init__(self, channels: int, clusters: int, discriminating: Discriminating) -> None:
        super().__init__()
        self.channels, hidden = channels, discriminating.hidden
        self.first = nn.Linear(channels + clusters, hidden, bias=False)
        self.second = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(
        self, places: Float[Tensor, "B P C"], said: Float[Tensor, "B K"], others: Int[Tensor, "B n"]
    ) -> Float[Tensor, "B n P"]:
        """Return how well what is said of each image goes with every place of some images of the batch."""
        of_places, of_said = self.first.weight.split([self.channels, said.shape[1]], dim=1)
        seen, heard = F.linear(places, of_places), F.linear(said, of_said)
        both = F.relu(seen[others] + heard[:, None, None])
        scores: Tensor = self.score(F.relu(self.second(both)))
        return scores[..., 0]


def places_of(maps: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P C"]:
    """Return the places of maps, a row each: averages, half as many a side as a map has pixels and `FINEST` at most.

    Rows and columns that are left over where the side does not divide are no part of any.
    """
    side = min(maps.shape[2:])
    across = min(side, max(2, math.ceil(side / FINEST)))
    return F.avg_pool2d(maps, across).flatten(2).transpose(1, 2)
