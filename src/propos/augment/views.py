"""From a batch of uint8 images to the tensors a network sees."""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from propos.augment.colour import jitter
from propos.augment.colour_jitter import jitter_in_turn
from propos.augment.draw import ViewDraw, draw_views
from propos.augment.effects import blur_, solarise_
from propos.augment.frames import USUAL_CROP, Frames, Shapes, centre_box
from propos.augment.resample import resample, resample_rotated, resized, rotate_quarters, whole_box
from propos.config import ViewSettings
from propos.distributed.transfer import send

# On a CPU a batch is made in parts of this many pixel values, so that intermediate results stay in the cache and no
# memory is allocated for every batch; this size measured fastest.
PART = 3 << 18


class RandomViews:
    """Independent random views of every image of a batch, two in training, all with the same few operations."""

    def __init__(self, settings: ViewSettings, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.settings = settings
        self.mean, self.std = mean, std

    def __call__(
        self,
        images: UInt8[Tensor, "B C H W"],
        generator: torch.Generator,
        aspects: Float[Tensor, " W"] | None = None,
        share: tuple[int, slice] | None = None,
        frames: Frames | None = None,
    ) -> tuple[Float[Tensor, "B C S S"], Float[Tensor, "B C S S"]]:
        """Return the two views, normalised; see `make`."""
        first, second = self.make(2, images, generator, aspects, share, frames)
        return first, second

    def make(
        self,
        count: int,
        images: UInt8[Tensor, "B C H W"],
        generator: torch.Generator,
        aspects: Float[Tensor, " W"] | None = None,
        share: tuple[int, slice] | None = None,
        frames: Frames | None = None,
    ) -> Float[Tensor, "V B C S S"]:
        """Return `count` normalised views of each image.

        `aspects` are the widths over heights the images had before they were squashed into this tensor, so that a
        crop has the shape it would have had in them. With `share`, the images are a slice of a larger batch; random
        choices are drawn for the whole batch, whose aspects are given, so that they do not depend on the process.
        `frames` are the parts of the tensor that images fill, if they keep their shape.
        """
        device, size, (batch, channels, height, width) = images.device, self.settings.size, images.shape
        whole, part = share or (batch, slice(batch))
        drawn = draw_views(self.settings, whole, width / height if aspects is None else aspects, generator, count)
        draw = drawn.of(part).to(device)
        if frames is not None:
            frames = frames.to(device)
        views = torch.empty((count, batch, channels, size, size), device=device)
        values = channels * max(height, size) * max(width, size)
        per_part = max(1, PART // values) if device.type == "cpu" else batch
        for start in range(0, batch, per_part):
            part = slice(start, start + per_part)
            here = None if frames is None else frames.of(part)
            views[:, part] = self._make(_filled(images[part], here), draw.of(part), here)
        return views

    def _make(
        self, images: UInt8[Tensor, "B C H W"], draw: ViewDraw, frames: Frames | None
    ) -> Float[Tensor, "V B C S S"]:
        if self.settings.rotation:
            views = resample_rotated(images, draw.box, draw.flip, draw.angle, self.settings.size)
        else:
            views = resample(images, draw.box, draw.flip, self.settings.size, frames)
        if self.settings.turns > 1:
            views = rotate_quarters(views, draw.turns)
        views = jitter(views, draw) if self.settings.colours == "at-once" else jitter_in_turn(views, draw)
        if any(self.settings.blur):
            blur_(views, draw.blur)
        if any(self.settings.solarise):
            solarise_(views, draw.solarise)
        mean, std = normalisation_tensors(self.mean, self.std, images.device)
        return views.sub_(mean).div_(std)


def plain_view(
    images: UInt8[Tensor, "B C H W"],
    size: int,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    plain: Literal["whole", "centre"] | float = "whole",
    shapes: Shapes | None = None,
) -> Float[Tensor, "B C S S"]:
    """Return the whole images, or their middle, resized to the square (the test transform), normalised.

    A number for `plain` is the middle with this crop instead of the usual one.
    """
    shapes = shapes or Shapes()
    crop = {"whole": None, "centre": USUAL_CROP}[plain] if isinstance(plain, str) else plain
    if crop is not None or shapes.frames is not None:
        pixels = _in_shape(images, size, shapes, crop)
    elif images.shape[-2:] == (size, size):
        pixels = images.float().div_(255)
    else:
        pixels = resized(images, size)
    shift, scale = normalisation_tensors(mean, std, images.device)
    return pixels.sub_(shift).div_(scale)


def _in_shape(
    images: UInt8[Tensor, "B C H W"], size: int, shapes: Shapes, crop: float | None
) -> Float[Tensor, "B C S S"]:
    """Resize the whole of each image, or its middle, knowing its true shape."""
    if crop is not None and _is_sized(shapes.frames, round(size / crop)):
        assert shapes.frames is not None
        if images.shape[-2:] == (size, size):  # they were cut while they were decoded
            return images.float().div_(255)
        if images.device.type == "cpu":
            return _cut(images, size, shapes.frames)
    batch, channels, height, width = images.shape
    frames = None if shapes.frames is None else shapes.frames.to(images.device)
    ratio = torch.full((batch,), width / height) if shapes.aspects is None else shapes.aspects
    if shapes.frames is not None:
        long = shapes.frames.columns / shapes.frames.rows
        ratio = torch.where(shapes.frames.lying, 1 / long, long)
    whole = whole_box(images.device).expand(batch, 4)
    box = whole if crop is None else send(centre_box(size, ratio, crop), images.device)
    box = box[None]
    flip = torch.zeros(1, batch, dtype=torch.bool, device=images.device)
    made = torch.empty((batch, channels, size, size), device=images.device)
    per_part = max(1, PART // (channels * height * width)) if images.device.type == "cpu" else batch
    for start in range(0, batch, per_part):
        part = slice(start, start + per_part)
        here = None if frames is None else frames.of(part)
        made[part] = resample(_filled(images[part], here), box[:, part], flip[:, part], size, here)[0]
    return made


def _is_sized(frames: Frames | None, short: int) -> bool:
    """Return whether all images keep their shape with this shorter side, so that their middle need not be resized."""
    return frames is not None and bool((frames.rows == short).all())


def _cut(images: UInt8[Tensor, "B C H W"], size: int, frames: Frames) -> Float[Tensor, "B C S S"]:
    """Cut the middle square out of each image, at the pixels that `middle` gives, without resampling."""
    squares = []
    for image, rows, columns, lying in zip(images, frames.rows, frames.columns, frames.lying, strict=True):
        top, left = (round((int(side) - size) / 2) for side in (rows, columns))
        square = image[:, top : top + size, left : left + size]
        squares.append(square.mT if lying else square)
    return torch.stack(squares).float().div_(255)


def _filled(images: UInt8[Tensor, "B C H W"], frames: Frames | None) -> UInt8[Tensor, "B C H w"]:
    """Return the columns that any of the images fills; all of them on a device, which would have to be waited for."""
    return images if frames is None or images.device.type != "cpu" else images[..., : int(frames.columns.max())]


@cache
def normalisation_tensors(
    mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> tuple[Float[Tensor, "C 1 1"], Float[Tensor, "C 1 1"]]:
    """Return mean and std on a device, where they stay."""
    return torch.tensor(mean, device=device)[:, None, None], torch.tensor(std, device=device)[:, None, None]
