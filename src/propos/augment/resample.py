"""Crop, mirror, turn and resize each image to a square in a single resampling."""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from propos.augment.frames import Frames

Axis = tuple[Float[Tensor, "V B"], Float[Tensor, "V B"], Bool[Tensor, "V B"]]  # start, extent, whether it is mirrored


def resample(
    images: UInt8[Tensor, "B C H W"],
    box: Float[Tensor, "V B 4"],
    flip: Bool[Tensor, "V B"],
    size: int,
    frames: Frames | None = None,
) -> Float[Tensor, "V B C S S"]:
    """Resize V boxes of each image to a square of pixels in [0, 1], antialiased where that shrinks.

    Boxes are in fractions of the images, which fill their tensor, or their frames of it.

    The filter is Pillow's `resize(box=…, resample=BILINEAR)`: a triangle as wide as an output pixel but never
    narrower than an input one. It is separable: every output row is a weighted sum of a few input rows, then every
    output column one of a few columns. Sums of whole rows run through memory in order, which measured many times
    faster than dense matrix products and than sampling point by point; so columns are laid out as rows for theirs.
    """
    views, batch = flip.shape
    _, channels, height, width = images.shape
    numbers = torch.arange(views * batch * channels, device=images.device)
    across, down = (box[..., 0], box[..., 2], flip), (box[..., 1], box[..., 3], torch.zeros_like(flip))
    rows: int | Tensor = height
    columns: int | Tensor = width
    if frames is not None:
        rows, columns = frames.rows, frames.columns
        across, down = _lying(across, down, frames.lying)

    if frames is None and height == width:  # both axes at once
        start, extent, mirrored = (torch.stack(pair) for pair in zip(down, across, strict=True))
        (index, other_index), (weight, other_weight) = _taps(start, extent, mirrored, height, height, size)
    else:
        index, weight = _taps(*down, rows, height, size)
        other_index, other_weight = _taps(*across, columns, width, size)
    index = index[:, :, None] + height * numbers[: batch * channels].view(batch, channels, 1, 1)
    weight = (weight / 255)[:, :, None].expand(index.shape)
    lowered = weighted_row_sums(images.float().reshape(-1, width), index, weight)

    index = other_index + width * numbers[: views * batch].view(views, batch, 1, 1)
    table = lowered.view(views * batch, channels * size, width).transpose(1, 2).reshape(-1, channels * size)
    squares = weighted_row_sums(table, index, other_weight).view(views, batch, size, channels * size).transpose(2, 3)
    squares = squares.reshape(views, batch, channels, size, size)
    return squares if frames is None else torch.where(frames.lying[:, None, None, None], squares.mT, squares)


def resample_rotated(
    images: UInt8[Tensor, "B C H W"],
    box: Float[Tensor, "V B 4"],
    flip: Bool[Tensor, "V B"],
    angle: Float[Tensor, "V B"],
    size: int,
) -> Float[Tensor, "V B C S S"]:
    """Resize V boxes of each image to a square of pixels in [0, 1], each turned about its centre by an angle.

    A turned box is not separable: every output pixel is a bilinear sample. Larger images are first resized to the
    square, so that views show what the plain view of the whole image shows, as sharp as it is there: cut from the image
    itself they were sharper, and clusters of the plain views worse for it (docs/results.md). Outside the image its
    border pixels are repeated.
    """
    views, batch = flip.shape
    _, channels, height, width = images.shape
    # grid_sample measures from -1 to 1 across the image, so the box's half sides are its sides as fractions.
    ticks = (2 * torch.arange(size, device=images.device) + 1) / size - 1
    half_width, half_height = box[..., 2], box[..., 3]
    cosine, sine = torch.cos(angle), torch.sin(angle)
    across = torch.where(flip, -half_width, half_width)
    matrix = [
        across * cosine,
        -half_height * sine * height / width,
        across * sine * width / height,
        half_height * cosine,
    ]
    x_across, x_down, y_across, y_down = torch.stack(matrix)[..., None, None]
    centre = (2 * box[..., :2] + box[..., 2:] - 1)[..., None, None, :]
    x = x_across * ticks + x_down * ticks[:, None]
    y = y_across * ticks + y_down * ticks[:, None]
    grid = (torch.stack([x, y], dim=-1) + centre).transpose(0, 1).reshape(batch, views * size, size, 2)
    pixels = images.float().div_(255) if max(height, width) <= size else resized(images, size)
    turned = F.grid_sample(pixels, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return turned.view(batch, channels, views, size, size).permute(2, 0, 1, 3, 4)


def resized(images: UInt8[Tensor, "B C H W"], size: int) -> Float[Tensor, "B C S S"]:
    """Resize whole images to a square of pixels in [0, 1]."""
    batch, device = len(images), images.device
    return resample(
        images, whole_box(device).expand(1, batch, 4), torch.zeros(1, batch, dtype=torch.bool, device=device), size
    )[0]


@cache
def whole_box(device: torch.device) -> Float[Tensor, " 4"]:
    """Return the box of a whole image on a device, where it stays."""
    return torch.tensor([0.0, 0.0, 1.0, 1.0], device=device)


def rotate_quarters(views: Float[Tensor, "V B C S S"], turns: Int[Tensor, "V B"]) -> Float[Tensor, "V B C S S"]:
    """Turn each view by its own number of quarters, against the clock."""
    quarters = turns[..., None, None, None]
    half = torch.where(quarters >= 2, views.flip(-2, -1), views)
    return torch.where(quarters % 2 == 1, half.rot90(1, (-2, -1)), half)


def _lying(across: Axis, down: Axis, lying: Bool[Tensor, " B"]) -> tuple[Axis, Axis]:
    """Exchange the axes of the images that lie on their side: what is across in them goes down in the tensor."""
    start, extent, flip = (torch.where(lying, b, a) for a, b in zip(across, down, strict=True))
    other_start, other_extent, other_flip = (torch.where(lying, a, b) for a, b in zip(across, down, strict=True))
    return (start, extent, flip), (other_start, other_extent, other_flip)


def _taps(
    start: Float[Tensor, "*A V B"],
    extent: Float[Tensor, "*A V B"],
    flip: Bool[Tensor, "*A V B"],
    pixels: int | Int[Tensor, " B"],
    most_pixels: int,
    size: int,
) -> tuple[Int[Tensor, "*A V B S K"], Float[Tensor, "*A V B S K"]]:
    """Return the input pixels, along an axis, that each output pixel is a weighted sum of, and their weights.

    All images have the same number of pixels, or each its own, at most `most_pixels`.
    """
    step = extent * (pixels / size)
    reach = step.clamp(min=1)[..., None, None]
    ticks = torch.arange(size, device=start.device) + (0.5 - size / 2)
    centres = ((start + extent / 2) * pixels)[..., None] + torch.where(flip, -step, step)[..., None] * ticks
    centres = centres[..., None]
    most = math.ceil(2 * max(1.0, most_pixels / size) - 1e-6)
    edge = pixels if isinstance(pixels, int) else pixels[:, None, None]
    index = torch.floor(centres - reach + 0.5) + torch.arange(most, device=start.device)
    weight = (1 - (index + 0.5 - centres).abs() / reach).clamp(min=0)
    inside = index.clamp(0, edge - 1) if isinstance(edge, int) else index.clamp(min=0).clamp(max=edge - 1)
    weight = weight * (index == inside)
    return inside.long(), weight / weight.sum(dim=-1, keepdim=True)


def weighted_row_sums(
    table: Float[Tensor, "R L"], index: Int[Tensor, "*N K"], weight: Float[Tensor, "*N K"]
) -> Float[Tensor, "M L"]:
    """Return weighted sums of a table's rows: K rows in each."""
    taps = index.shape[-1]
    return F.embedding_bag(index.reshape(-1, taps), table, mode="sum", per_sample_weights=weight.reshape(-1, taps))
