"""The random choices of views, drawn for a whole batch at once from the run's generator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.config import ViewSettings
from propos.distributed.transfer import send_together

CROP_ATTEMPTS = 10
ON_HOST = ("blur", "solarise")
SHARPEST, BLURRIEST = 0.1, 2.0  # σ in pixels, as in SimCLR and BYOL


@dataclass(frozen=True)
class ViewDraw:
    """The random choices behind V views of each of B images."""

    box: Float[Tensor, "V B 4"]  # left, top, width, height, as fractions of the image
    flip: Bool[Tensor, "V B"]
    turns: Int[Tensor, "V B"]  # quarter turns
    angle: Float[Tensor, "V B"]  # radians
    brightness: Float[Tensor, "V B"]
    contrast: Float[Tensor, "V B"]
    saturation: Float[Tensor, "V B"]
    hue: Float[Tensor, "V B"]  # turns
    order: Int[Tensor, "V B 4"]  # the turns of brightness, contrast, saturation and hue, where they come in turn
    grey: Bool[Tensor, "V B"]
    blur: Float[Tensor, "V B"]  # σ in pixels of the view; 0 where it stays sharp
    solarise: Bool[Tensor, "V B"]

    def to(self, device: torch.device) -> ViewDraw:
        """Move the choices to the images' device, except which views are blurred and solarised.

        The host makes a list of these; reading its length from the device would wait for it.
        """
        moved = [name for name in vars(self) if name not in ON_HOST]
        sent = send_together([getattr(self, name) for name in moved], device)
        return replace(self, **dict(zip(moved, sent, strict=True)))

    def of(self, part: slice) -> ViewDraw:
        """Return the choices for some of the images."""
        return ViewDraw(**{name: value[:, part] for name, value in vars(self).items()})


def draw_views(
    settings: ViewSettings,
    batch: int,
    aspect: float | Float[Tensor, " B"],
    generator: torch.Generator,
    views: int = 2,
) -> ViewDraw:
    """Draw the choices for `views` views of `batch` images whose width is `aspect` times their height."""
    shape = (views, batch)
    uniform = torch.rand((8, *shape), generator=generator)
    jittered = uniform[0] < settings.jitter
    box = _crops(settings, shape, aspect, generator)
    blur, solarise = _effects(settings, shape, generator)
    turns = _turns(settings, shape, generator)
    return ViewDraw(
        box=box,
        flip=uniform[1] < settings.flip,
        turns=turns,
        angle=(2 * uniform[2] - 1) * math.radians(settings.rotation),
        brightness=_factor(uniform[3], settings.brightness, jittered),
        contrast=_factor(uniform[4], settings.contrast, jittered),
        saturation=_factor(uniform[5], settings.saturation, jittered),
        hue=(2 * uniform[6] - 1) * settings.hue * jittered,
        order=_order(settings, shape, generator),
        grey=uniform[7] < settings.grey,
        blur=blur,
        solarise=solarise,
    )


def _factor(uniform: Float[Tensor, "V B"], strength: float, jittered: Bool[Tensor, "V B"]) -> Float[Tensor, "V B"]:
    return 1 + (2 * uniform - 1) * strength * jittered


def _effects(
    settings: ViewSettings, shape: tuple[int, int], generator: torch.Generator
) -> tuple[Float[Tensor, "V B"], Bool[Tensor, "V B"]]:
    """Draw blur and solarisation, whose probabilities the views take in turn.

    They are drawn last, and only where there are any: what else is drawn does not depend on them.
    """
    if not any(settings.blur + settings.solarise):
        return torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
    uniform = torch.rand((3, *shape), generator=generator)
    turn = torch.arange(shape[0]) % 2
    blurred, solarised = (torch.tensor(pair)[turn, None] for pair in (settings.blur, settings.solarise))
    sigma = SHARPEST + (BLURRIEST - SHARPEST) * uniform[1]
    return sigma * (uniform[0] < blurred), uniform[2] < solarised


def _order(settings: ViewSettings, shape: tuple[int, int], generator: torch.Generator) -> Int[Tensor, "V B 4"]:
    """Draw the order of changes of colour; as effects, last and only where there is one."""
    if settings.colours == "at-once":
        return torch.zeros((*shape, 4), dtype=torch.long)
    return torch.rand((*shape, 4), generator=generator).argsort(dim=-1)


def _turns(settings: ViewSettings, shape: tuple[int, int], generator: torch.Generator) -> Int[Tensor, "V B"]:
    """Draw quarter turns; as effects, last and only where there are any."""
    if settings.turns == 1:
        return torch.zeros(shape, dtype=torch.long)
    return torch.randint(settings.turns, shape, generator=generator) * (4 // settings.turns)


def _crops(
    settings: ViewSettings,
    shape: tuple[int, int],
    aspect: float | Float[Tensor, " B"],
    generator: torch.Generator,
) -> Float[Tensor, "V B 4"]:
    """Draw boxes of random area and aspect ratio inside the image, uniformly placed.

    Of ten attempts the first that fits is taken, as everyone does since Inception; where none fits, the largest
    central box of an allowed ratio.
    """
    low, high = settings.crop_scale
    uniform = torch.rand((4, CROP_ATTEMPTS, *shape), generator=generator)
    area = low + (high - low) * uniform[0]
    log_low, log_high = (math.log(ratio) for ratio in settings.crop_ratio)
    ratio = torch.exp(log_low + (log_high - log_low) * uniform[1])
    # In fractions of the image, a box of pixel ratio r has width/height = r / aspect.
    width, height = torch.sqrt(area * ratio / aspect), torch.sqrt(area / ratio * aspect)
    fits = (width <= 1) & (height <= 1)
    first = fits.to(torch.uint8).argmax(dim=0, keepdim=True)
    width, height, across, down = (v.gather(0, first)[0] for v in (width, height, uniform[2], uniform[3]))
    none_fits = ~fits.any(dim=0)
    fallback = (torch.as_tensor(aspect).clamp(*settings.crop_ratio) / aspect).expand(shape)
    width = torch.where(none_fits, fallback.clamp(max=1), width)
    height = torch.where(none_fits, (1 / fallback).clamp(max=1), height)
    across, down = across.masked_fill(none_fits, 0.5), down.masked_fill(none_fits, 0.5)
    return torch.stack([(1 - width) * across, (1 - height) * down, width, height], dim=-1)
