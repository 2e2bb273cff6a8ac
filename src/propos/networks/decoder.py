"""A decoder: what an image's embedding tells of its pixels."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.networks.heads import Head, Mlp


@dataclass(frozen=True)
class Decoding:
    """The widths of a decoder's hidden layers, and the side of the images that it makes."""

    hidden: tuple[int, ...]
    side: int


class Decoder(nn.Module):
    """Fully connected layers that make an image of an embedding, a unit vector."""

    def __init__(self, inner: int, decoding: Decoding, channels: int) -> None:
        super().__init__()
        self.side = decoding.side
        self.layers = Mlp(inner, Head((*decoding.hidden, channels * decoding.side**2), norm=False))

    def forward(self, projections: Float[Tensor, "B D"]) -> Float[Tensor, "B P"]:
        """Return the pixels of the images that raw projections are of."""
        pixels: Tensor = self.layers(F.normalize(projections, dim=1))
        return pixels

    def wanted(self, view: Float[Tensor, "B C S S"]) -> Float[Tensor, "B P"]:
        """Return the pixels that it should make of a view: the view's own, averaged down to its side."""
        return F.adaptive_avg_pool2d(view, self.side).flatten(1)
