"""A frozen network and the way its weights want to see images."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from propos.augment import Shapes, plain_view
from propos.networks.pretrained import Weights, frozen

PART = 32  # images at a time: more measured no faster, and take more memory


class Seeing(nn.Module):
    """Images in, features out: the middle square of each, resized, normalised, through a network that never learns."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.weights = weights
        self.network = frozen(weights)

    @property
    def features(self) -> int:
        """The width of what it makes of an image."""
        return self.weights.network.features

    @torch.inference_mode()
    def forward(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes) -> Float[Tensor, "B F"]:
        """Return the features of images whose true shapes are given beside them."""
        parts = (slice(start, start + PART) for start in range(0, len(images), PART))
        return torch.cat([self.network(self._view(images[part], _of(shapes, part))) for part in parts])

    def _view(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes) -> Float[Tensor, "B 3 S S"]:
        """Cut out the middle square, as the weights' own test transform does."""
        coloured = images.expand(-1, 3, -1, -1)  # grey is seen as colours without a hue
        seen = self.weights.network
        view = plain_view(coloured, seen.side, *seen.pixels, "centre", shapes, seen.crop)
        return view.contiguous(memory_format=torch.channels_last)


def _of(shapes: Shapes, part: slice) -> Shapes:
    """Return the shapes of some of the images."""
    return Shapes(
        None if shapes.aspects is None else shapes.aspects[part],
        None if shapes.frames is None else shapes.frames.of(part),
    )


class Whitening(nn.Module):
    """Unit features less their mean, along their main directions, each divided by a power of its spread.

    A few directions that all images share outweigh those that tell kinds of images apart; a power below one evens
    them out without raising noise to their level (docs/pretrained.md).
    """

    def __init__(self, inner: int, components: int) -> None:
        super().__init__()
        self.features = components
        self.register_buffer("mean", torch.zeros(inner))
        self.register_buffer("directions", torch.zeros(inner, components))

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B C"]:
        """Return the features along the main directions."""
        unit = nn.functional.normalize(features, dim=1)
        return (unit - self.get_buffer("mean")) @ self.get_buffer("directions")

    @torch.no_grad()
    def fit(self, batches: Iterable[Float[Tensor, "B F"]], power: float) -> None:
        """Find mean, directions and spreads of all images' features; directions without any spread stay zero."""
        inner = len(self.get_buffer("mean"))
        count, total, products = 0, torch.zeros(inner).double(), torch.zeros(inner, inner).double()
        near = None  # the mean: sums of what is left lose nothing
        for batch in batches:  # all at once would take more memory than the features themselves
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
        directions = vectors * largest.sign() / spreads[:kept] ** power  # an axis has two directions: one is ours
        self.get_buffer("mean").copy_(mean)
        self.get_buffer("directions").zero_()[:, :kept] = directions.to(self.get_buffer("directions").dtype)
