"""Colour jitter as in torchvision: brightness, contrast, saturation and hue in a random order for each view.

Each change except hue is an affine transform of the pixel, so one round is one matrix product for the whole batch, even
though the views' changes differ; a view without a change in this round is multiplied by 1. Values are clipped between
rounds, which is why the order matters. Hue is that of HSV.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.augment.colour import CHROMA, GREY, LUMA
from propos.augment.draw import ViewDraw

AFFINE = ("brightness", "contrast", "saturation")  # hue is the fourth
HUE = len(AFFINE)


def jitter_in_turn(views: Float[Tensor, "V B C S S"], draw: ViewDraw) -> Float[Tensor, "V B C S S"]:
    """Apply each view's colour choices to pixels in [0, 1] in its own order, clip after each, then take its colours."""
    count, batch, channels, size, _ = views.shape
    pixels = views.reshape(count * batch, channels, size * size)
    order = draw.order.flatten(0, 1)
    factors = {name: getattr(draw, name).flatten() for name in AFFINE}
    for place in range(HUE):
        pixels = _changed(pixels, factors, order, place, order[:, HUE] > place)
    if channels == 3:
        pixels = shift_hue(pixels, draw.hue.flatten())
    for place in range(1, HUE + 1):
        pixels = _changed(pixels, factors, order, place, order[:, HUE] < place)
    if channels == 3:
        parts, grey = _parts(pixels.device), draw.grey.flatten()[:, None, None]
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


@cache
def _parts(device: torch.device) -> _Parts:
    """Return them, sent there once."""
    made = torch.eye(3), GREY, CHROMA, LUMA[None], torch.tensor([[5.0], [3.0], [1.0]])
    return _Parts(*(part.to(device) for part in made))


def _changed(
    pixels: Float[Tensor, "N C P"],
    factors: dict[str, Float[Tensor, " N"]],
    order: Int[Tensor, "N 4"],
    place: int,
    here: Bool[Tensor, " N"],
) -> Float[Tensor, "N C P"]:
    """Apply the change whose turn it is to each view that is `here`."""
    one = torch.ones_like(factors["brightness"])
    brightness, contrast, saturation = (
        torch.where(here & (order[:, number] == place), factors[name], one)[:, None, None]
        for number, name in enumerate(AFFINE)
    )
    gain = brightness * contrast
    if pixels.shape[1] == 1:
        matrix, luma = gain, pixels.mean(dim=-1, keepdim=True)
    else:
        parts = _parts(pixels.device)
        matrix = gain * (parts.identity + (saturation - 1) * parts.chroma)
        luma = parts.luma @ pixels.mean(dim=-1, keepdim=True)
    return torch.baddbmm((1 - contrast) * luma, matrix, pixels).clamp_(0, 1)


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
