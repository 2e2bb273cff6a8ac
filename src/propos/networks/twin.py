"""The online network, its slowly following target, and the predictor between them."""

from __future__ import annotations

import copy
from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor, nn

from propos.config import NetworkSettings
from propos.networks.heads import Mlp, initialise_predictor
from propos.networks.resnet import ResNet, backbone

Views = tuple[Float[Tensor, "B C S S"], Float[Tensor, "B C S S"]]
Noise = tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]
Projections = tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]


class Encoder(nn.Module):
    """A backbone and its projector."""

    def __init__(self, settings: NetworkSettings, channels: int) -> None:
        super().__init__()
        self.backbone: ResNet = backbone(settings.backbone, settings.stem, channels)
        self.projector = Mlp(self.backbone.features, settings.hidden, settings.dimension)

    def forward(self, images: Float[Tensor, "B C S S"]) -> Float[Tensor, "B D"]:
        """Return the raw projections."""
        projections: Tensor = self.projector(self.backbone(images))
        return projections


class TwinNetwork(nn.Module):
    """An online encoder with a predictor, and a target encoder that is the online one's moving average.

    Each view passes on its own, so batch norm sees the statistics of one view. The target's batch norm runs on
    batch statistics in training too, and keeps running buffers of its own for the E-step.
    """

    def __init__(self, settings: NetworkSettings, channels: int) -> None:
        super().__init__()
        self.online = Encoder(settings, channels)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor = Mlp(settings.dimension, settings.hidden, settings.dimension)
        initialise_predictor(self.predictor)
        # Channels last measured faster, on CPUs too (docs/speed.md); torch leaves the keyword out of its types.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, views: Views, noise: Noise | None) -> tuple[Projections, Projections, Projections]:
        """Return projections, predictions (of projection + noise) and targets of both views."""
        first, second = self.online(views[0]), self.online(views[1])
        if noise is None:
            predictions = self.predictor(first), self.predictor(second)
        else:
            predictions = self.predictor(first + noise[0]), self.predictor(second + noise[1])
        with torch.no_grad():
            targets = self.target(views[0]), self.target(views[1])
        return (first, second), predictions, targets

    @torch.no_grad()
    def move_target(self, momentum: float) -> None:
        """Move the target's parameters a step of 1 - momentum towards the online ones."""
        torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), 1 - momentum)

    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that gradients reach."""
        return list(chain(self.online.parameters(), self.predictor.parameters()))


def build_network(settings: NetworkSettings, channels: int, seed: int) -> TwinNetwork:
    """Build a twin network whose first weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TwinNetwork(settings, channels)
