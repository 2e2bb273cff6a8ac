"""Cutting a box out of each image, mirrored and turned as asked, and resizing it to a square: one resample."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def resample(
    images: Float[Tensor, "B C H W"], box: Float[Tensor, "V B 4"], flip: Bool[Tensor, "V B"], size: int
) -> Float[Tensor, "V B C S S"]:
    """Resize V boxes of each image to a square, antialiased where that shrinks.

    The filter is Pillow's `resize(box=…, resample=BILINEAR)`: a triangle as wide as an output pixel, so the
    resize is separable and becomes two batched matrix products. The images are read once for all views: their
    column weights stand side by side in one matrix.
    """
    views, batch = flip.shape
    _, channels, height, width = images.shape
    rows = _weights(box[..., 1], box[..., 3], height, size)
    columns = _weights(box[..., 0], box[..., 2], width, size)
    columns = torch.where(flip[..., None, None], columns.flip(-2), columns)
    side_by_side = columns.permute(1, 3, 0, 2).reshape(batch, width, views * size)
    narrowed = torch.bmm(images.reshape(batch, channels * height, width), side_by_side)
    narrowed = narrowed.view(batch, channels, height, views, size).permute(3, 0, 1, 2, 4)
    return torch.matmul(rows[:, :, None], narrowed)


def resample_turned(
    images: Float[Tensor, "B C H W"],
    box: Float[Tensor, "V B 4"],
    flip: Bool[Tensor, "V B"],
    angle: Float[Tensor, "V B"],
    size: int,
) -> Float[Tensor, "V B C S S"]:
    """Resize V boxes of each image to a square, each turned about its centre by an angle.

    A turned box is not separable: every output pixel averages s × s bilinear samples, s the factor by which the
    whole image would shrink. Outside the image its border goes on.
    """
    views, batch = flip.shape
    _, channels, height, width = images.shape
    samples = max(1, math.ceil(max(height, width) / size - 1e-6))
    fine = size * samples
    ticks = (torch.arange(fine, device=images.device, dtype=images.dtype) + 0.5) / fine - 0.5
    across = torch.where(flip, -1.0, 1.0)[..., None, None] * box[..., 2, None, None] * width * ticks
    down = box[..., 3, None, None] * height * ticks[:, None]
    cosine, sine = torch.cos(angle)[..., None, None], torch.sin(angle)[..., None, None]
    centre_x, centre_y = box[..., 0] + box[..., 2] / 2, box[..., 1] + box[..., 3] / 2
    # grid_sample measures from -1 to 1 across the image.
    x = 2 * (centre_x[..., None, None] + (cosine * across - sine * down) / width) - 1
    y = 2 * (centre_y[..., None, None] + (sine * across + cosine * down) / height) - 1
    grid = torch.stack([x, y], dim=-1).transpose(0, 1).reshape(batch, views * fine, fine, 2)
    turned = F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    if samples > 1:
        turned = F.avg_pool2d(turned, samples)
    return turned.view(batch, channels, views, size, size).permute(2, 0, 1, 3, 4)


def _weights(
    start: Float[Tensor, "V B"], extent: Float[Tensor, "V B"], pixels: int, size: int
) -> Float[Tensor, "V B S P"]:
    """Return how much each of an image's pixels along one axis adds to each of the output's."""
    step = (extent * pixels / size)[..., None]
    ticks = torch.arange(size, device=start.device, dtype=start.dtype) + 0.5
    centres = (start * pixels)[..., None] + ticks * step
    positions = torch.arange(pixels, device=start.device, dtype=start.dtype) + 0.5
    weights = (1 - (positions - centres[..., None]).abs() / step.clamp(min=1)[..., None]).clamp(min=0)
    return weights / weights.sum(dim=-1, keepdim=True)
