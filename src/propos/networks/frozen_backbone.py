"""A frozen pretrained network with the preprocessing that its weights expect."""

from __future__ import annotations

import hashlib

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from propos.augment import Shapes
from propos.augment.views import normalisation_tensors
from propos.networks.fine_tuning import trunk_features, trunk_of
from propos.networks.fused import FUSED, fuse
from propos.networks.parallel import pass_parts
from propos.networks.pretrained import Weights, build_frozen

PART = 32  # images at a time: more measured no faster, and take more memory
FUSED_PART = 4  # images in one pass of fused convolutions, on one thread


class FrozenBackbone(nn.Module):
    """Features of images by a frozen network: the central square of each image is cropped, resized and normalised.

    With `below_last` the outputs are the feature maps below the last stage, which is then trained.
    """

    def __init__(self, weights: Weights, below_last: bool = False) -> None:
        super().__init__()
        self.weights = weights
        self._below_last = below_last
        whole = build_frozen(weights)
        self.network = trunk_of(whole, weights.network.name) if below_last else whole
        self.fused = fuse(self.network)  # on a CPU, if it can be
        self.features = trunk_features(weights.network) if below_last else weights.network.features

    @torch.inference_mode()
    def forward(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes) -> Float[Tensor, "B F"]:
        """Return the features of images; `shapes` are their true shapes."""
        if self.fused is not None and images.device.type == "cpu":
            return torch.cat(pass_parts(lambda part: self._by_fused(images, shapes, part), _parts(images, FUSED_PART)))
        return torch.cat([self._plain(self._view(images[part], _of(shapes, part))) for part in _parts(images, PART)])

    def middle_of(self, side: int) -> int:
        """Return the side of the square that is cut out of the middle of images whose shorter side is `side`.

        It is 0 if the network takes the whole image, or resizes it in its own way.
        """
        network = self.weights.network
        return network.side if network.resample is None and network.short_side == side else 0

    def backend(self, device: torch.device) -> str:
        """Return what computes the features on a device: their last digits depend on it."""
        return f"{device.type} {FUSED}" if device.type == "cpu" and self.fused is not None else device.type

    def cache_key(self, device: torch.device) -> str:
        """Return what a cache of the features on a device is called by."""
        network = self.weights.network
        part = " below its last stage" if self._below_last else ""
        told = "" if network.description is None else f" {hashlib.sha256(network.description.encode()).hexdigest()}"
        return f"{network.name}{part} {self.weights.sha256}{told} {self.backend(device)}"

    @torch.inference_mode()  # its own, since it is called on another thread
    def _by_fused(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes, part: slice) -> Float[Tensor, "b F"]:
        assert self.fused is not None
        features: Tensor = self.fused(self._view(images[part], _of(shapes, part)))
        return features

    def _plain(self, view: Float[Tensor, "B 3 S S"]) -> Float[Tensor, "B F"]:
        features: Tensor = self.network(view.contiguous(memory_format=torch.channels_last))
        return features

    def _view(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes) -> Float[Tensor, "B 3 S S"]:
        """Resize, crop and normalise, as the weights' own test transform does."""
        coloured = images.expand(-1, 3, -1, -1)  # greyscale as RGB
        network = self.weights.network
        mean, std = normalisation_tensors(*network.pixels, images.device)
        return network.squares(coloured, shapes).sub_(mean).div_(std)


def _parts(images: Tensor, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, len(images), size)]


def _of(shapes: Shapes, part: slice) -> Shapes:
    """Return the shapes of some of the images."""
    return Shapes(
        None if shapes.aspects is None else shapes.aspects[part],
        None if shapes.frames is None else shapes.frames.of(part),
    )
