"""One affine colour transform per image: brightness, contrast, saturation, hue and grey in a single product.

Each of them is linear in the pixel, keeps grey grey and, hue and saturation, keeps the luma; so, clipping aside,
they commute and their order does not matter. Hue turns the colour about the grey axis in YIQ (as NTSC sets did),
which is linear; the HSV hue of the other libraries is not.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from propos.augment.draw import ViewDraw

# ITU-R BT.601 luma with the two chroma axes of YIQ.
RGB_TO_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
LUMA = RGB_TO_YIQ[0]
# What a colour is the sum of: its grey, its chroma, and its chroma a quarter turn on.
GREY = LUMA.expand(3, 3)
CHROMA = torch.eye(3) - GREY
QUARTER = torch.linalg.inv(RGB_TO_YIQ) @ torch.tensor([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]]) @ RGB_TO_YIQ
PARTS = torch.stack([GREY, CHROMA, QUARTER]).view(3, 9)


def jitter(views: Float[Tensor, "V B C S S"], draw: ViewDraw) -> Float[Tensor, "V B C S S"]:
    """Apply each view's colour choices to pixels in [0, 1] and clip to [0, 1]."""
    count, batch, channels, size, _ = views.shape
    pixels = views.reshape(count * batch, channels, size * size)
    matrix = _matrix(draw, channels).view(count * batch, channels, channels)
    # Contrast blends with the mean luma of the view as brightness left it.
    shift = ((1 - draw.contrast) * draw.brightness).view(-1, 1, 1) * _mean_luma(pixels)
    return torch.baddbmm(shift, matrix, pixels).clamp_(0, 1).view(count, batch, channels, size, size)


@cache
def _on(device: torch.device) -> tuple[Float[Tensor, "1 3"], Float[Tensor, "3 9"]]:
    """Return the luma and the parts on a device, where they stay."""
    return LUMA[None].to(device), PARTS.to(device)


def _mean_luma(pixels: Float[Tensor, "N C P"]) -> Float[Tensor, "N 1 1"]:
    means = pixels.mean(dim=-1, keepdim=True)
    return means if pixels.shape[1] == 1 else _on(means.device)[0] @ means


def _matrix(draw: ViewDraw, channels: int) -> Float[Tensor, "V B C*C"]:
    gain = (draw.brightness * draw.contrast)[..., None]
    if channels == 1:
        return gain
    saturation = draw.saturation.masked_fill(draw.grey, 0.0)
    turn = 2 * math.pi * draw.hue
    shares = [torch.ones_like(turn), saturation * torch.cos(turn), saturation * torch.sin(turn)]
    return gain * torch.stack(shares, dim=-1) @ _on(gain.device)[1]
