"""EfficientNet-Lite: inverted residuals with ReLU6, without squeeze-and-excitation, as TensorFlow published it."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from propos.networks.norm import BatchNorm

EPSILON = 1e-3  # TensorFlow's, which the published weights were trained with
STEM, HEAD = 32, 1280  # widths of the first and the last convolution, the same in all variants
# Depth, kernel, stride of the first block, expansion and width of each stage.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


@dataclass(frozen=True)
class LiteShape:
    """Width and depth relative to the smallest network, and the side of the images it was trained on."""

    width: float
    depth: float
    side: int


LITE_SHAPES = {
    "efficientnet-lite0": LiteShape(1.0, 1.0, 224),
    "efficientnet-lite1": LiteShape(1.0, 1.1, 240),
    "efficientnet-lite2": LiteShape(1.1, 1.2, 260),
}


class SameConv(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding: if the padding is odd, there is one more at the right and below."""

    def __init__(self, inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        # With a stride of 1 the padding is the same on all sides, and torch's own is faster.
        around = kernel // 2 if stride == 1 else 0
        super().__init__(inner, outer, kernel, stride, around, groups=groups, bias=False)

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the convolution of the padded images."""
        if self.stride[0] == 1:
            return super().forward(x)
        across, down = (self._missing(side) for side in (x.shape[3], x.shape[2]))
        return super().forward(F.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2)))

    def _missing(self, side: int) -> int:
        """Return the padding of a side, in pixels, that gives one window at every stride."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        return max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)


class ConvNorm(nn.Module):
    """A convolution, its batch norm, which `fold_batch_norm` merges into it, and ReLU6 unless it is linear."""

    def __init__(
        self, inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1, linear: bool = False
    ) -> None:
        super().__init__()
        self.conv: nn.Module = SameConv(inner, outer, kernel, stride, groups)
        self.norm: nn.Module = BatchNorm(outer, eps=EPSILON)
        self.linear = linear

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the normalised convolution, through ReLU6 unless it is linear."""
        out: Tensor = self.norm(self.conv(x))
        return out if self.linear else F.relu6(out, inplace=True)


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution and projection; added to the input where it has the same shape."""

    def __init__(self, inner: int, outer: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inner * expansion
        self.expand = ConvNorm(inner, wide, 1) if expansion > 1 else None
        self.depthwise = ConvNorm(wide, wide, kernel, stride, groups=wide)
        self.project = ConvNorm(wide, outer, 1, linear=True)
        self.adds = stride == 1 and inner == outer

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the block's output."""
        wide = x if self.expand is None else self.expand(x)
        out: Tensor = self.project(self.depthwise(wide))
        return out.add_(x) if self.adds else out


class EfficientNetLite(nn.Module):
    """A network from images to pooled features; no classifier."""

    def __init__(self, shape: LiteShape, channels: int = 3) -> None:
        super().__init__()
        self.features = HEAD
        self.stem = ConvNorm(channels, STEM, 3, stride=2)
        blocks, inner = [], STEM
        for number, (depth, kernel, stride, expansion, width) in enumerate(STAGES):
            outer = _round_width(width * shape.width)
            ends = number in (0, len(STAGES) - 1)  # the first and the last stage are not deepened
            for place in range(depth if ends else math.ceil(depth * shape.depth)):
                blocks.append(InvertedResidual(inner, outer, kernel, 1 if place else stride, expansion))
                self.last_width, inner = inner, outer  # the widths of the last block's input and output
        self.blocks = nn.Sequential(*blocks)
        self.head = ConvNorm(inner, HEAD, 1)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the pooled features of the images."""
        maps: Tensor = self.head(self.blocks(self.stem(images)))
        return dense(maps).mean(dim=(2, 3))


def dense(maps: Tensor) -> Tensor:
    """Return feature maps in torch's layout; a network of fused convolutions (`fused.py`) has them in oneDNN's."""
    return maps.to_dense() if maps.is_mkldnn else maps


def fold_batch_norm(network: EfficientNetLite) -> EfficientNetLite:
    """Return a copy for eval mode in which every batch norm is folded into its convolution: faster, equal output."""
    folded = copy.deepcopy(network).eval().requires_grad_(False)
    for module in folded.modules():
        if isinstance(module, ConvNorm):
            assert isinstance(module.conv, nn.Conv2d)
            assert isinstance(module.norm, BatchNorm)
            module.conv = fuse_conv_bn_eval(module.conv, module.norm)
            module.norm = nn.Identity()
    return folded


def _round_width(width: float) -> int:
    """Round a width to a multiple of 8 as MobileNet does, never down by more than a tenth."""
    rounded = max(8, int(width + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * width else rounded + 8


# The published names of our convolutions and norms.
_OUTSIDE = {"_conv_stem": "stem.conv", "_bn0": "stem.norm", "_conv_head": "head.conv", "_bn1": "head.norm"}
_IN_BLOCK = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}


def our_name(published: str) -> str | None:
    """Return our name of a published weight; None for weights that are not used, such as the classifier's."""
    block = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", published)
    if block is not None:
        ours = _IN_BLOCK.get(block[2])
        return None if ours is None else f"blocks.{block[1]}.{ours}.{block[3]}"
    part, _, leaf = published.partition(".")
    ours = _OUTSIDE.get(part)
    return None if ours is None else f"{ours}.{leaf}"
