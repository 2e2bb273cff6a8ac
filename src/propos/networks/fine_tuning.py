"""The part of a pretrained network that is trained further, and the frozen part below it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from propos.common.errors import InputError
from propos.networks.efficientnet import EfficientNetLite, dense
from propos.networks.norm import BatchNorm
from propos.networks.pretrained import Pretrained, Weights, build_with
from propos.networks.whitening import Whitening

Learns = Literal["last", "all"]


@dataclass(frozen=True)
class Tuning:
    """The network to tune, the part of it that is trained, and whether batch norms keep their pretrained statistics."""

    network: Pretrained
    learns: Learns
    keeps_norms: bool


class Trunk(nn.Module):
    """The part of a network below its last stage: from images to flattened feature maps."""

    def __init__(self, network: EfficientNetLite) -> None:
        super().__init__()
        self.stem, self.blocks = network.stem, network.blocks[:-1]

    def forward(self, images: Float[Tensor, "B 3 S S"]) -> Float[Tensor, "B F"]:
        """Return the feature maps of the images, a row an image."""
        maps: Tensor = self.blocks(self.stem(images))
        return dense(maps).flatten(1)


class LastStage(nn.Module):
    """A network's last block and the convolution after it: from flattened feature maps to pooled features."""

    def __init__(self, network: EfficientNetLite) -> None:
        super().__init__()
        self.block, self.head = network.blocks[-1], network.head
        self.inner = network.last_width

    def forward(self, rows: Float[Tensor, "B M"]) -> Float[Tensor, "B F"]:
        """Return the pooled features of the maps."""
        side = math.isqrt(rows.shape[1] // self.inner)
        maps = rows.view(-1, self.inner, side, side).contiguous(memory_format=torch.channels_last)
        out: Tensor = self.head(self.block(maps))
        return out.mean(dim=(2, 3))


class Tuned(nn.Module):
    """The trained part of a pretrained network, followed by a whitening that stays as it was fitted."""

    def __init__(self, tuning: Tuning, components: int) -> None:
        super().__init__()
        network = tuning.network
        self.learns, self.keeps_norms = tuning.learns, tuning.keeps_norms
        self.top = _top(network, network.build(), tuning.learns)
        self.whitening = Whitening(network.features, components)
        self.features = components

    def forward(self, inputs: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        """Return the whitened features of images, or of the frozen part's feature maps."""
        if inputs.ndim == 4:
            inputs = inputs.expand(-1, 3, -1, -1)  # greyscale as RGB
        whitened: Tensor = self.whitening(self.top(inputs).float())
        return whitened

    def train(self, mode: bool = True) -> Tuned:
        """Set the mode of all parts; batch norms that keep their statistics are never in training mode."""
        super().train(mode)
        if self.keeps_norms:
            for module in self.modules():
                if isinstance(module, BatchNorm | nn.BatchNorm2d):
                    module.eval()
        return self

    def load_pretrained(self, weights: Weights) -> None:
        """Load pretrained weights."""
        self.top.load_state_dict(_top(weights.network, build_with(weights), self.learns).state_dict())


def trunk_of(network: nn.Module, name: str) -> Trunk:
    """Return the frozen part of a network whose last stage is trained."""
    return Trunk(_in_stages(network, name))


def trunk_features(network: Pretrained) -> int:
    """Return the number of values of an image's feature maps below the last stage."""
    with torch.device("meta"):
        built = _in_stages(network.build(), network.name)
    side = network.side
    for _ in range(5):  # each halving rounds up
        side = math.ceil(side / 2)
    return built.last_width * side**2


def _top(network: Pretrained, built: nn.Module, learns: Learns) -> nn.Module:
    return built if learns == "all" else LastStage(_in_stages(built, network.name))


def _in_stages(network: nn.Module, name: str) -> EfficientNetLite:
    """Return a network whose stages are known; refuse others."""
    if not isinstance(network, EfficientNetLite):
        raise InputError(
            f"start.learns = last: the last stage of {name} is unknown: set start.learns=all, or use efficientnet-lite0"
        )
    return network
