"""One affine colour transform per image: brightness, contrast, saturation, hue and grey in a single product.

Each of them is linear in the pixel, keeps grey grey and, hue and saturation, keeps the luma; so, clipping aside,
they commute and their order does not matter. Hue turns the colour about the grey axis in YIQ (as NTSC sets did),
which is linear; the HSV hue of the other libraries is not.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from propos.augment.draw import ViewDraw

LUMA = (0.299, 0.587, 0.114)
# ITU-R BT.601 luma with the two chroma axes of YIQ.
RGB_TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def jitter(
    views: Float[Tensor, "V B C S S"], draw: ViewDraw, mean: Float[Tensor, " C"], std: Float[Tensor, " C"]
) -> Float[Tensor, "V B C S S"]:
    """Apply each view's colour choices to pixels in [0, 1], clip to [0, 1], then normalise by mean and std."""
    count, batch, channels, size, _ = views.shape
    pixels = views.reshape(count * batch, channels, size * size)
    matrix = _matrix(draw, channels).reshape(count * batch, channels, channels)
    # Contrast blends with the mean luma of the view as brightness left it.
    brightness, contrast = draw.brightness.reshape(-1, 1, 1), draw.contrast.reshape(-1, 1, 1)
    shift = (1 - contrast) * brightness * _mean_luma(pixels)
    scale, offset = (1 / std)[:, None], (mean / std)[:, None]
    coloured = torch.baddbmm(shift * scale - offset, matrix * scale, pixels)
    return torch.clamp(coloured, min=-offset, max=scale - offset).view(count, batch, channels, size, size)


def _mean_luma(pixels: Float[Tensor, "N C P"]) -> Float[Tensor, "N 1 1"]:
    means = pixels.mean(dim=-1)
    if pixels.shape[1] == 3:
        means = means @ means.new_tensor(LUMA)[:, None]
    return means[..., None]


def _matrix(draw: ViewDraw, channels: int) -> Float[Tensor, "V B C C"]:
    gain = (draw.brightness * draw.contrast)[..., None, None]
    if channels == 1:
        return gain
    to_yiq = gain.new_tensor(RGB_TO_YIQ)
    saturation = draw.saturation.masked_fill(draw.grey, 0.0)
    turn = 2 * math.pi * draw.hue
    cosine, sine = saturation * torch.cos(turn), saturation * torch.sin(turn)
    zero, one = torch.zeros_like(turn), torch.ones_like(turn)
    chroma = torch.stack([one, zero, zero, zero, cosine, -sine, zero, sine, cosine], dim=-1)
    turned: Tensor = torch.linalg.inv(to_yiq) @ chroma.view(*turn.shape, 3, 3) @ to_yiq
    return gain * turned
