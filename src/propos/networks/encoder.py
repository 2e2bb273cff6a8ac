"""A backbone and its projector."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Encoder(nn.Module):
    """A backbone with `features` outputs and a projector; without a projector its outputs are the features.

    `outputs` is the number of the projector's outputs, if its last linear layer does not have as many.
    """

    def __init__(
        self,
        backbone: nn.Module,
        features: int,
        projector: Callable[[int], nn.Module] | None = None,
        outputs: int | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.features, self.outputs = backbone, features, outputs
        self.projector: nn.Module = nn.Identity() if projector is None else projector(features)
        self.register_buffer("_anchor", torch.empty(0), persistent=False)  # raw pixels have no parameter

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""
        return self.get_buffer("_anchor").device

    @property
    def dimension(self) -> int:
        """The number of its outputs."""
        if self.outputs is not None:
            return self.outputs
        linear = [layer for layer in self.projector.modules() if isinstance(layer, nn.Linear)]
        return linear[-1].out_features if linear else self.features

    def forward(self, images: Float[Tensor, "B ..."]) -> Float[Tensor, "B D"]:
        """Return the projections, not normalised."""
        projections: Tensor = self.projector(self.backbone(images))
        return projections
