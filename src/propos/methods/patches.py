"""Nine patches of an image, as jigsaw puzzles have them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.methods.setup import Setup
from propos.networks.resnet import smallest_side

GRID, PATCHES = 3, 9
INSIDE = 64 / 75  # the side of a patch, of the cell that it is cut from at random: no edge continues in the next patch


@dataclass(frozen=True)
class Cutter:
    """Cuts views into patches: the sides of a cell of the 3 × 3 grid and of the patch inside it."""

    cell: int
    patch: int

    @classmethod
    def of(cls, setup: Setup) -> Cutter:
        """Return the cutter for a setup; patches are enlarged where the backbone would halve them to nothing."""
        least = smallest_side(setup.network.backbone, setup.network.stem)
        cell = max(math.ceil(setup.views.size / GRID), math.ceil(least / INSIDE))
        return cls(cell, max(least, round(INSIDE * cell)))

    def cut(self, views: Float[Tensor, "b C H W"], draws: Float[Tensor, "b 18"]) -> Float[Tensor, "b 9 C p p"]:
        """Return the patches row by row; the draws, from N(0, 1), place each in its cell."""
        side = GRID * self.cell
        if views.shape[-1] != side:
            views = F.interpolate(views, (side, side), mode="bilinear", antialias=True)
        corners = uniform(draws, self.cell - self.patch + 1).unflatten(1, (PATCHES, 2))
        number = torch.arange(PATCHES, device=views.device)
        corners = corners + self.cell * torch.stack([number // GRID, number % GRID], dim=1)
        rows, columns = (corners[..., axis, None] + torch.arange(self.patch, device=views.device) for axis in (0, 1))
        image = torch.arange(len(views), device=views.device)[:, None, None, None]
        patches = views.permute(0, 2, 3, 1)[image, rows[:, :, :, None], columns[:, :, None, :]]
        return patches.permute(0, 1, 4, 2, 3)


def uniform(draws: Float[Tensor, "*b"], count: int) -> Int[Tensor, "*b"]:
    """Return numbers from 0 to `count` − 1, equally often, from draws from N(0, 1)."""
    shares: Tensor = torch.special.ndtr(draws)
    return (shares * count).long().clamp(max=count - 1)


def in_order(rows: Float[Tensor, "b 9 ..."], orders: Int[Tensor, "b 9"]) -> Float[Tensor, "b 9 ..."]:
    """Return the patches of each image in its own order."""
    return rows[torch.arange(len(rows), device=rows.device)[:, None], orders]
