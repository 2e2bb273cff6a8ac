"""Heads: fully connected layers with ReLU between them."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from propos.networks.norm import BatchNorm
from propos.networks.precision import full_precision


@dataclass(frozen=True)
class Head:
    """The widths of a head's layers, and where batch norm stands."""

    widths: tuple[int, ...]  # of each layer's output; the last is the head's
    norm: bool = True  # after each layer but the last
    norm_last: bool = False


class Mlp(nn.Sequential):
    """Fully connected layers, batch norm and ReLU, in the precision of their weights wherever they stand.

    Half precision is for the backbone: the rounding of bfloat16 is as large as the noise of positive sampling.
    """

    def __init__(self, inner: int, head: Head) -> None:
        layers: list[nn.Module] = []
        for width in head.widths[:-1]:
            layers += [nn.Linear(inner, width), *([BatchNorm(width)] if head.norm else []), nn.ReLU(inplace=True)]
            inner = width
        layers.append(nn.Linear(inner, head.widths[-1]))
        if head.norm_last:
            layers.append(BatchNorm(head.widths[-1]))
        super().__init__(*layers)

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Return what the layers make of features, which may come in half precision."""
        with full_precision(features.device):
            made: Tensor = super().forward(features.to(self.get_parameter("0.weight").dtype))  # type: ignore[no-untyped-call]
        return made


def initialise_predictor(predictor: Mlp) -> None:
    """Start the predictor's linear layers at N(0, 0.01) with zero bias, so that it begins by saying little."""
    for layer in predictor:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)
