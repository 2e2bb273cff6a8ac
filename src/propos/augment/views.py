"""From a batch of uint8 images to the tensors a network sees."""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from propos.augment.colour import jitter
from propos.augment.draw import draw_views
from propos.augment.resample import resample, resample_turned
from propos.config import ViewSettings


class RandomViews:
    """Two independent random views of every image of a batch, in one vectorised pass."""

    def __init__(self, settings: ViewSettings, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.settings = settings
        self.mean = torch.tensor(mean)
        self.std = torch.tensor(std)

    def __call__(
        self, images: UInt8[Tensor, "B C H W"], generator: torch.Generator
    ) -> tuple[Float[Tensor, "B C S S"], Float[Tensor, "B C S S"]]:
        """Return the two views, normalised."""
        device, (batch, _, height, width) = images.device, images.shape
        draw = draw_views(self.settings, batch, width / height, generator).to(device)
        size = self.settings.size
        if self.settings.rotation:
            views = resample_turned(images, draw.box, draw.flip, draw.angle, size)
        else:
            views = resample(images, draw.box, draw.flip, size)
        first, second = jitter(views, draw, self.mean.to(device), self.std.to(device))
        return first, second


def plain_view(
    images: UInt8[Tensor, "B C H W"], size: int, mean: tuple[float, ...], std: tuple[float, ...]
) -> Float[Tensor, "B C S S"]:
    """Return the whole images resized to the square (the test transform), normalised."""
    batch, device = len(images), images.device
    if images.shape[-2:] == (size, size):
        pixels = images.float().div_(255)
    else:
        box = torch.tensor([0.0, 0.0, 1.0, 1.0], device=device).expand(1, batch, 4)
        pixels = resample(images, box, torch.zeros(1, batch, dtype=torch.bool, device=device), size)[0]
    shift, scale = (torch.tensor(v, device=device)[:, None, None] for v in (mean, std))
    return (pixels - shift) / scale
