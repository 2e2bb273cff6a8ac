"""The projector and the predictor: FC-BN-ReLU-FC."""

from __future__ import annotations

from torch import nn


class Mlp(nn.Sequential):
    """A fully connected layer, batch norm, ReLU, and another fully connected layer."""

    def __init__(self, inner: int, hidden: int, outer: int) -> None:
        super().__init__(
            nn.Linear(inner, hidden), nn.BatchNorm1d(hidden), nn.ReLU(inplace=True), nn.Linear(hidden, outer)
        )


def initialise_predictor(predictor: Mlp) -> None:
    """Start the predictor's linear layers at N(0, 0.01) with zero bias, so that it begins by saying little."""
    for layer in predictor:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)
