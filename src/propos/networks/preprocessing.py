"""Images as a network of the hub takes them: resized as Pillow does it, and cropped at the same pixels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import UInt8
from torch import Tensor

from propos.augment import Shapes
from propos.config.description import Filter


def resized_squares(
    images: UInt8[Tensor, "B C H W"], shapes: Shapes, side: int, short: int | None, resample: Filter
) -> UInt8[Tensor, "B C S S"]:
    """Return each image as a square of this side.

    The shorter side becomes `short` and the middle is cut out; without `short` the whole image becomes the square.
    """
    squares = [_square(_own_pixels(images, shapes, place), side, short, resample) for place in range(len(images))]
    return torch.stack(squares)


def _own_pixels(images: UInt8[Tensor, "B C H W"], shapes: Shapes, place: int) -> UInt8[Tensor, "C h w"]:
    """Return an image without the rest of its tensor, upright."""
    frames = shapes.frames
    if frames is None:
        return images[place]
    own = images[place, :, : int(frames.rows[place]), : int(frames.columns[place])]
    return own.mT if bool(frames.lying[place]) else own


def _square(image: UInt8[Tensor, "C h w"], side: int, short: int | None, resample: Filter) -> UInt8[Tensor, "C S S"]:
    height, width = image.shape[1:]
    if short is None:
        return _resized(image, (side, side), resample)
    size = (short, short * width // height) if height <= width else (short * height // width, short)
    whole = _resized(image, size, resample)
    top, left = ((each - side) // 2 for each in size)
    return whole[:, top : top + side, left : left + side]


def _resized(image: UInt8[Tensor, "C h w"], size: tuple[int, int], resample: Filter) -> UInt8[Tensor, "C H W"]:
    if image.shape[1:] == size:
        return image
    pixels = image if image.device.type == "cpu" else image.float()  # bytes are resized on the CPU alone
    made: Tensor = F.interpolate(pixels[None], size, mode=resample, antialias=True)[0]
    return made if made.dtype == torch.uint8 else made.round_().clamp_(0, 255).to(torch.uint8)
