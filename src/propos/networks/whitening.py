"""Partial whitening of a pretrained network's features."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Whitening(nn.Module):
    """PCA whitening of unit vectors, each component divided by a power of its standard deviation.

    A few components with large variance outweigh those that separate classes; a power below 1 reduces them without
    amplifying noise as much as full whitening (docs/pretrained.md).
    """

    def __init__(self, inner: int, components: int) -> None:
        super().__init__()
        self.features = components
        self.register_buffer("mean", torch.zeros(inner))
        self.register_buffer("directions", torch.zeros(inner, components))

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B C"]:
        """Return the whitened features."""
        unit = nn.functional.normalize(features, dim=1)
        return (unit - self.get_buffer("mean")) @ self.get_buffer("directions")

    @torch.no_grad()
    def fit(self, batches: Iterable[Float[Tensor, "B F"]], power: float) -> None:
        """Fit mean and components to all images' features; components without variance stay zero."""
        inner = len(self.get_buffer("mean"))
        count, total, products = 0, torch.zeros(inner).double(), torch.zeros(inner, inner).double()
        near = None  # near the mean, subtracted so that sums are exact enough
        for batch in batches:  # in batches, to limit memory
            unit = nn.functional.normalize(batch.cpu().double(), dim=1)
            near = unit.mean(dim=0) if near is None else near
            rest = unit - near
            count, total = count + len(rest), total + rest.sum(dim=0)
            products.addmm_(rest.T, rest)
        assert near is not None
        off = total / count
        mean = near + off
        spreads, vectors = torch.linalg.eigh(products / count - off.outer(off))
        spreads, vectors = spreads.flip(0).clamp(min=0).sqrt(), vectors.flip(1)
        kept = int((spreads[: self.features] > 1e-6 * spreads[0]).sum())
        vectors = vectors[:, :kept]
        largest = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True))
        directions = vectors * largest.sign() / spreads[:kept] ** power  # an axis has two signs: fix one
        self.get_buffer("mean").copy_(mean)
        self.get_buffer("directions").zero_()[:, :kept] = directions.to(self.get_buffer("directions").dtype)
