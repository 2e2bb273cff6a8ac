"""Residual networks whose state-dict keys are torchvision's, so public weights load."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from propos.common.errors import InputError
from propos.networks.norm import BatchNorm, recomputing

Stem = Literal["imagenet", "small"]
FEW = 8  # channels


def _conv3(inner: int, outer: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inner, outer, kernel_size=3, stride=stride, padding=1, bias=False)


def _conv1(inner: int, outer: int, stride: int = 1) -> nn.Conv2d:
    kind = _EveryOther if stride > 1 and inner < FEW else nn.Conv2d
    return kind(inner, outer, kernel_size=1, stride=stride, bias=False)


class _EveryOther(nn.Conv2d):
    """A strided 1×1 convolution that leaves the other pixels out first.

    On CPUs without AVX-512 oneDNN's own corrupts memory in its backward pass if it has few channels (torch 2.13).
    """

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the convolution of every other pixel."""
        down, across = self.stride
        return F.conv2d(x[:, :, ::down, ::across], self.weight)


def _shortcut(inner: int, outer: int, stride: int) -> nn.Module | None:
    if stride == 1 and inner == outer:
        return None
    return nn.Sequential(_conv1(inner, outer, stride), BatchNorm(outer))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions around a shortcut."""

    expansion = 1

    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv3(inner, width, stride), BatchNorm(width)
        self.conv2, self.bn2 = _conv3(width, width), BatchNorm(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inner, width, stride)

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the block's output."""
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out.add_(shortcut), inplace=True)


class Bottleneck(nn.Module):
    """1×1, 3×3 (which carries the stride), 1×1 convolutions around a shortcut."""

    expansion = 4

    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        outer = width * self.expansion
        self.conv1, self.bn1 = _conv1(inner, width), BatchNorm(width)
        self.conv2, self.bn2 = _conv3(width, width, stride), BatchNorm(width)
        self.conv3, self.bn3 = _conv1(width, outer), BatchNorm(outer)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inner, outer, stride)

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the block's output."""
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return F.relu(out.add_(shortcut), inplace=True)


@dataclass(frozen=True)
class Shape:
    """The blocks, depths and widths of a residual network."""

    block: type[BasicBlock] | type[Bottleneck]
    depths: tuple[int, ...]
    widths: tuple[int, ...]


SHAPES = {
    "resnet18": Shape(BasicBlock, (2, 2, 2, 2), (64, 128, 256, 512)),
    "resnet34": Shape(BasicBlock, (3, 4, 6, 3), (64, 128, 256, 512)),
    "resnet50": Shape(Bottleneck, (3, 4, 6, 3), (64, 128, 256, 512)),
    # For tiny images and CPUs: a quarter of the depth, half the width, one stage less.
    "resnet-small": Shape(BasicBlock, (1, 1, 1), (32, 64, 128)),
}


class ResNet(nn.Module):
    """A residual network from images to pooled features; no classifier."""

    def __init__(self, shape: Shape, stem: Stem, channels: int) -> None:
        super().__init__()
        width = shape.widths[0]
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(channels, width, kernel_size=7, stride=2, padding=3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        else:
            self.conv1 = _conv3(channels, width)
            self.maxpool = nn.Identity()
        self.bn1 = BatchNorm(width)
        self.relu = nn.ReLU(inplace=True)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        inner = width
        self._stages: list[str] = []
        for number, (depth, width) in enumerate(zip(shape.depths, shape.widths, strict=True), start=1):
            strides = [1 if number == 1 else 2] + [1] * (depth - 1)
            blocks = []
            for stride in strides:
                blocks.append(shape.block(inner, width, stride))
                inner = width * shape.block.expansion
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
            self._stages.append(f"layer{number}")
        self.features, self.lower_features = inner, shape.widths[0] * shape.block.expansion
        self.recompute = False  # whether the backward pass computes blocks again instead of storing activations
        _initialise(self.modules())

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the pooled features of the images."""
        return self.upper(self.lower(images))

    def lower(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B c h w"]:
        """Return the first stage's feature maps of the images."""
        return self._passed(self.maxpool(self.relu(self.bn1(self.conv1(images)))), self._stages[:1])

    def upper(self, maps: Float[Tensor, "B c h w"]) -> Float[Tensor, "B F"]:
        """Return the pooled features of the first stage's maps by the other stages."""
        pooled: Tensor = self.avgpool(self._passed(maps, self._stages[1:]))
        return pooled.flatten(1)

    def _passed(self, x: Tensor, stages: list[str]) -> Tensor:
        for stage in stages:
            for block in self.get_submodule(stage).children():
                x = _recomputed(block, x) if self.recompute and torch.is_grad_enabled() else block(x)
        return x


def _recomputed(block: nn.Module, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
    """Pass a block and store only its input: the backward pass computes the rest again (checkpointing)."""
    made: Tensor = checkpoint(
        block,
        x,
        use_reentrant=False,
        preserve_rng_state=False,  # nothing in it is random
        context_fn=lambda: (nullcontext(), recomputing(block)),
    )
    return made


def _initialise(modules: Iterable[nn.Module]) -> None:
    """Initialise as torchvision does."""
    for module in modules:
        # On meta, drawing would have no effect, but torch would load its compiler.
        if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def smallest_side(name: str, stem: Stem) -> int:
    """Return the smallest side of images that a backbone accepts; it halves smaller ones to nothing."""
    if name == "whitened":
        return 1  # its inputs are not images
    return (4 if stem == "imagenet" else 1) << (len(SHAPES[name].depths) - 1)


def feature_width(name: str, width: float = 1.0) -> int:
    """Return the width of a backbone's output."""
    shape = shape_of(name, width)
    return shape.widths[-1] * shape.block.expansion


def backbone(name: str, stem: Stem, channels: int, width: float = 1.0) -> ResNet:
    """Build a backbone by name; `width` scales the widths of its layers."""
    return ResNet(shape_of(name, width), stem, channels)


def shape_of(name: str, width: float = 1.0) -> Shape:
    """Return the shape of a backbone by name; `width` scales the widths of its layers."""
    if name not in SHAPES:
        raise InputError(f"network.backbone = {name!r}: choose one of {', '.join(SHAPES)}")
    shape = SHAPES[name]
    return replace(shape, widths=tuple(max(1, round(width * each)) for each in shape.widths))
