"""Cluster centres that are learnt, in several sets, and what holds their clusters to a size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.networks.precision import full_precision


@dataclass(frozen=True)
class CentreSets:
    """How many centres each set has, and how clusters are held to a size.

    A cluster with less than `least` of an even share of the images is favoured more with every batch, by up to `step`;
    one with more, less, down to not at all.
    """

    sizes: tuple[int, ...]
    step: float
    least: float


class Centres(nn.Module):
    """Sets of unit vectors beside what is read, of which the first set answers.

    What they were when the epoch began, and how much each is favoured, are kept with them.
    """

    def __init__(self, inner: int, sets: CentreSets, temperature: float) -> None:
        super().__init__()
        self.sets, self.temperature = sets, temperature
        self.weight = nn.Parameter(F.normalize(torch.randn(sum(sets.sizes), inner), dim=1))
        self.register_buffer("before", self.weight.detach().clone())
        self.register_buffer("favours", torch.zeros(sum(sets.sizes)))

    def forward(self, read: Float[Tensor, "B D"]) -> Float[Tensor, "B K"]:
        """Return the cosines with the first set's centres, divided by the temperature."""
        with full_precision(read.device):
            first = self.weight[: self.sets.sizes[0]]
            return F.linear(F.normalize(read.to(first.dtype), dim=1), F.normalize(first, dim=1)) / self.temperature

    def answer(self, read: Float[Tensor, "B D"]) -> Float[Tensor, "B K"]:
        """Return what the first set says."""
        answered: Tensor = self(read)
        return answered

    def split(self, rows: Float[Tensor, "S ..."], dim: int = 0) -> tuple[Tensor, ...]:
        """Return what there is of all centres, set by set."""
        parts: tuple[Tensor, ...] = torch.split(rows, list(self.sets.sizes), dim=dim)
        return parts

    def now(self) -> tuple[Float[Tensor, "K D"], ...]:
        """Return each set's centres as they are, unit vectors."""
        return self.split(F.normalize(self.weight, dim=1))

    def earlier(self) -> tuple[Float[Tensor, "K D"], ...]:
        """Return each set's centres as the epoch began."""
        return self.split(self.get_buffer("before"))

    @torch.no_grad()
    def begin_epoch(self) -> None:
        """Remember the centres as they are."""
        self.get_buffer("before").copy_(F.normalize(self.weight, dim=1))

    @torch.no_grad()
    def nearest(self, first: Float[Tensor, "B D"], second: Float[Tensor, "B D"]) -> Int[Tensor, "B S"]:
        """Return each image's centre in each set: the largest mean cosine of both views, and favour."""
        mean = (F.normalize(first, dim=1) + F.normalize(second, dim=1)) / 2
        scores = mean @ F.normalize(self.weight, dim=1).T + self.get_buffer("favours")
        return torch.stack([each.argmax(dim=1) for each in self.split(scores, dim=1)], dim=1)

    @torch.no_grad()
    def move_favours(self, labels: Int[Tensor, "B S"]) -> None:
        """Favour the clusters more that a batch has too few images of, and the others less, never below 0."""
        for place, favours in enumerate(self.split(self.get_buffer("favours"))):
            numbers = torch.arange(len(favours), device=labels.device)
            shares = (labels[:, place, None] == numbers).to(favours.dtype).mean(dim=0)
            favours += self.sets.step * (self.sets.least / len(favours) - shares)
            favours.clamp_(min=0)
