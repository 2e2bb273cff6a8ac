"""Colour jitter as in torchvision: brightness, contrast, saturation and hue in a random order for each view.

Each change except hue is an affine transform of the pixel, so one round is one matrix product for the whole batch, even
though the views' changes differ; a view without a change in this round is multiplied by 1. Values are clipped between
rounds, which is why the order matters. Hue is that of HSV.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.augment.colour import CHROMA, GREY, LUMA
from propos.augment.draw import ViewDraw

AFFINE = ("brightness", "contrast", "saturation")  # hue is the fourth
HUE = len(AFFINE)


def jitter_in_turn(views: Float[Tensor, "V B C S S"], draw: ViewDraw) -> Float[Tensor, "V B C S S"]:
    """Apply each view's colour choices to pixels in [0, 1] in its own order, clip after each, then take its colours."""
    count, batch, channels, size, _ = views.shape
    pixels, parts = views.reshape(count * batch, channels, size * size), _parts(views.device)
    matrices, blends = _rounds(draw, channels, parts)
    for number, (matrix, blend) in enumerate(zip(matrices, blends, strict=True)):
        if number == HUE and channels == 3:
            pixels = shift_hue(pixels, draw.hue.flatten())
        luma = pixels.mean(dim=-1, keepdim=True)
        if channels == 3:
            luma = parts.luma @ luma
        pixels = torch.baddbmm(blend * luma, matrix, pixels).clamp_(0, 1)
    if channels == 3:
        grey = draw.grey.flatten()[:, None, None]
        pixels = torch.where(grey, parts.grey, parts.identity) @ pixels
    return pixels.view(count, batch, channels, size, size)


@dataclass(frozen=True)
class _Parts:
    """Constant matrices of the transforms, on a device."""

    identity: Float[Tensor, "3 3"]
    grey: Float[Tensor, "3 3"]
    chroma: Float[Tensor, "3 3"]
    luma: Float[Tensor, "1 3"]
    sixths: Float[Tensor, "3 1"]  # how far red, green and blue are from the end of the circle of hues
    turns: Int[Tensor, "6 1"]  # of the rounds: three before the hue's turn, three after it
    sides: Int[Tensor, "6 1"]  # 1 before it, -1 after it


@cache
def _parts(device: torch.device) -> _Parts:
    """Return them, sent there once."""
    rounds = torch.tensor([[0], [1], [2], [1], [2], [3]]), torch.tensor([[1], [1], [1], [-1], [-1], [-1]])
    made = torch.eye(3), GREY, CHROMA, LUMA[None], torch.tensor([[5.0], [3.0], [1.0]]), *rounds
    return _Parts(*(part.to(device) for part in made))


def _rounds(draw: ViewDraw, channels: int, parts: _Parts) -> tuple[Float[Tensor, "6 N C C"], Float[Tensor, "6 N 1 1"]]:
    """Return for each round and view the matrix of the change whose turn it is, and its share of the mean luma."""
    order = draw.order.flatten(0, 1).T
    here = (order[HUE] - parts.turns) * parts.sides > 0
    factors = torch.stack([getattr(draw, name).flatten() for name in AFFINE])
    chosen = torch.where(here[:, None] & (order[:HUE] == parts.turns[:, None]), factors, 1.0)
    brightness, contrast, saturation = chosen[..., None, None].unbind(dim=1)
    matrix = brightness * contrast
    if channels == 3:
        matrix = matrix * (parts.identity + (saturation - 1) * parts.chroma)
    return matrix, 1 - contrast


def shift_hue(pixels: Float[Tensor, "N 3 P"], turns: Float[Tensor, " N"]) -> Float[Tensor, "N 3 P"]:
    """Shift the HSV hue by a fraction of a turn; value and saturation stay."""
    red, green, blue = pixels.unbind(dim=1)
    highest, lowest = pixels.amax(dim=1), pixels.amin(dim=1)
    spread = highest - lowest
    scale = spread.clamp(min=1e-12)
    of_blue = 4 + (red - green) / scale
    of_green = 2 + (blue - red) / scale
    of_red = (green - blue) / scale
    sixths = torch.where(red == highest, of_red, torch.where(green == highest, of_green, of_blue))
    # Six sixths are a turn; a channel is the highest within one sixth of its own hue, and the lowest beyond two.
    sixths = (sixths + 6 * turns[:, None])[:, None]
    phase = (sixths + _parts(pixels.device).sixths) % 6
    share = torch.minimum(phase, 4 - phase).clamp_(0, 1)
    return highest[:, None] - spread[:, None] * share
