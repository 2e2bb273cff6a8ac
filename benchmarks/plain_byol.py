"""BYOL with a ResNet-18 for 32-pixel images in plain torch, as a tutorial writes it, for comparison with propos."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MOMENTUM = 0.996


def mlp(inner: int, hidden: int, outer: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inner, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outer))


class Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)])
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(out)) + self.shortcut(x))


def resnet18() -> nn.Module:
    widths = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
    blocks = [block for a, b, stride in widths for block in (Block(a, b, stride), Block(b, b, 1))]
    stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def byol_step(views: Callable[[], tuple[Tensor, Tensor]], hidden: int, dimension: int) -> Callable[[], None]:
    """Return a training step: two views, both networks, the loss, the optimiser and the moving average."""
    online = nn.Sequential(resnet18(), mlp(512, hidden, dimension))
    predictor = mlp(dimension, hidden, dimension)
    target = copy.deepcopy(online).requires_grad_(False)
    parameters = [*online.parameters(), *predictor.parameters()]
    optimiser = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=5e-4)

    def step() -> None:
        a, b = views()
        with torch.no_grad():
            ta, tb = target(a), target(b)
        pa, pb = predictor(online(a)), predictor(online(b))
        loss = 2 - F.cosine_similarity(pa, tb).mean() - F.cosine_similarity(pb, ta).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                slow.lerp_(fast, 1 - MOMENTUM)

    return step
