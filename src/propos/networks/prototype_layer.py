"""A layer of unit vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class PrototypeLayer(nn.Module):
    """The cosine of each input with each of the learnt unit vectors; their lengths have no effect."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(F.normalize(nn.Linear(inner, outer, bias=False).weight.detach(), dim=1))

    def vectors(self) -> Float[Tensor, "K F"]:
        """Return the unit vectors."""
        return F.normalize(self.weight, dim=1)

    @torch.no_grad()
    def normalise(self) -> None:
        """Set the lengths of the vectors to 1, so that they do not scale the effective learning rate."""
        self.weight.copy_(self.vectors())

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return the cosines."""
        return F.linear(F.normalize(features, dim=1), self.vectors())
