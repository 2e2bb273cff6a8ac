"""Fully connected layers."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from propos.networks.norm import BatchNorm
from propos.networks.precision import full_precision


class Float32(nn.Sequential):
    """Layers that compute in the precision of their weights, also inside a region of half precision.

    Half precision is for the backbone: the rounding of bfloat16 is as large as the noise of positive sampling.
    """

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Return the layers' output for features, which may be in half precision."""
        with full_precision(features.device):
            weights = next(self.parameters(), None)
            output: Tensor = super().forward(features if weights is None else features.to(weights.dtype))  # type: ignore[no-untyped-call]
        return output


class Mlp(Float32):
    """Linear layers with batch norm and ReLU between them; `widths` are the layers' output widths."""

    def __init__(self, inner: int, *widths: int, norm: bool = True, **options: Any) -> None:
        super().__init__(*mlp_layers(inner, *widths, norm=norm, **options))


def mlp_layers(
    inner: int, *widths: int, norm: bool = True, norm_last: bool = False, relu_first: bool = False
) -> list[nn.Module]:
    """Return the layers of an `Mlp`; `norm_last` adds batch norm to its output, `relu_first` a ReLU to its input."""
    layers: list[nn.Module] = [nn.ReLU()] if relu_first else []
    for width in widths[:-1]:
        layers += [nn.Linear(inner, width), *([BatchNorm(width)] if norm else []), nn.ReLU(inplace=True)]
        inner = width
    layers.append(nn.Linear(inner, widths[-1]))
    return [*layers, BatchNorm(widths[-1])] if norm_last else layers


def initialise_small(mlp: nn.Module) -> None:
    """Draw the weights of linear layers from N(0, 0.01) and set their biases to 0."""
    for layer in mlp.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)


@torch.no_grad()
def reinitialise(module: nn.Module, seed: int) -> None:
    """Draw the weights of linear layers again from N(0, 0.01), from a seed alone, and set their biases to 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in module.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.copy_(0.01 * torch.randn(layer.weight.shape))
                layer.bias.zero_()
