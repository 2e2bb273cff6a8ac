"""The operations of strong views, each on many images at once: the pixels that Pillow makes of them one by one.

Images are uint8. What changes values does so for all pixels of its images in a few passes, or, where it depends on how
often each value is there, by a table of 256 values for each image and channel; what moves pixels is an affine map for
each image, nearest pixel, black outside, in Pillow's fixed-point numbers. On a CPU torch's `where`, `index_copy_`,
`trunc`, comparisons and casts from float to uint8 cost several times as much as sums, products and other casts, and
are gone around.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from propos.distributed.transfer import send

Pixels = UInt8[Tensor, "n C S S"]
Tables = UInt8[Tensor, "n C 256"]

# The range from which each is drawn, uniformly, as SCAN's code has them.
RANGES: dict[str, tuple[float, float]] = {
    "identity": (0.0, 1.0),
    "autocontrast": (0.0, 1.0),
    "equalize": (0.0, 1.0),
    "rotate": (-30.0, 30.0),  # degrees
    "solarize": (0.0, 256.0),  # the threshold
    "colour": (0.05, 0.95),
    "contrast": (0.05, 0.95),
    "brightness": (0.05, 0.95),
    "sharpness": (0.05, 0.95),
    "shear_x": (-0.1, 0.1),
    "shear_y": (-0.1, 0.1),
    "translate_x": (-0.1, 0.1),  # of the side
    "translate_y": (-0.1, 0.1),
    "posterize": (4.0, 8.0),  # bits that are kept, cut to a whole number
}
NAMES = tuple(RANGES)


def apply_operations(
    pixels: UInt8[Tensor, "N C S S"],
    begins: Int[Tensor, " n"],
    operation: Int[Tensor, "n R"],
    values: Float[Tensor, "n R"],
) -> Pixels:
    """Apply to each image its own operations, by their places in NAMES, and values, one after the other.

    An image begins as one of those given. The choices lie on the host. In every turn images are laid in the order of
    their kinds of operation, so that those of one kind pass together where they lie.
    """
    lies = begins
    for turn in range(operation.shape[1]):
        kinds = _KIND_OF[operation[:, turn]]
        order = kinds.argsort(stable=True)
        pixels = pixels.index_select(0, send(lies[order], pixels.device))
        lies = order.argsort()
        names, ordered = [NAMES[each] for each in operation[order, turn].tolist()], values[order, turn]
        end = 0
        for (_, make), count in zip(KINDS, kinds.bincount(minlength=len(KINDS)).tolist(), strict=True):
            begin, end = end, end + count
            if count and make is not _identity:
                pixels[begin:end] = make(pixels[begin:end], names[begin:end], ordered[begin:end])
    return pixels.index_select(0, send(lies, pixels.device))


def _each(values: Float[Tensor, " n"], pixels: Pixels) -> Float[Tensor, "n 1 1 1"]:
    """Return an operation's values where the pixels are, one for each image."""
    return send(values.float(), pixels.device)[:, None, None, None]


def _cut(values: Float[Tensor, "n ..."]) -> UInt8[Tensor, "n ..."]:
    """Cut values from 0 to 255 to whole numbers."""
    return values.to(torch.int16).to(torch.uint8)


def _blended(from_: Tensor, to: Tensor, share: Float[Tensor, "n 1 1 1"]) -> UInt8[Tensor, "n ..."]:
    """Interpolate between two images, truncated to whole numbers as in Pillow."""
    start = from_.float()
    return _cut((to.float() - start).mul_(share).add_(start))


# What changes values by themselves.


def _identity(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    return pixels


def _solarized(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Invert what is as bright as the value, or brighter."""
    least = _each(values, pixels).ceil().to(torch.int16)
    brighter = (least - 1 - pixels) >> 15  # the sign: all bits or none
    return pixels ^ brighter.to(torch.uint8)


def _posterized(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Keep the highest bits of each value."""
    dropped = (8 - _each(values, pixels).int()).clamp(min=0)
    return pixels & (255 >> dropped << dropped).to(torch.uint8)


def _brightened(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Go from black to the image."""
    return _cut(pixels.float().mul_(_each(values, pixels)))


def _contrasted(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Go from the image's mean grey to the image."""
    mean = (_grey(pixels).flatten(1).sum(dim=1).double() / pixels[0, 0].numel() + 0.5).floor()
    return _blended(mean[:, None, None, None], pixels, _each(values, pixels))


# Tables.


def _looked_up(values: Int[Tensor, "n C pixels"], tables: Tables, pixels: Pixels) -> Pixels:
    """Look each value up in the table of its image and channel."""
    return tables.gather(2, values).view(pixels.shape)


def _levels(device: torch.device) -> Int[Tensor, " 256"]:
    return torch.arange(256, device=device)


def _stretched(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Stretch each channel from its darkest and brightest value to the whole range."""
    flat, levels = pixels.flatten(2), _levels(pixels.device)
    lowest, highest = (each(dim=-1, keepdim=True).double() for each in (flat.amin, flat.amax))
    alone = highest == lowest  # one value, which stays
    scale = torch.where(alone, 1.0, 255.0 / (highest - lowest))
    table = (levels * scale).sub_(lowest.masked_fill(alone, 0) * scale).clamp_(0, 255)
    return _looked_up(flat.long(), _cut(table), pixels)


def _equalized(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Spread each channel's values so that each range of them is as frequent as any other."""
    flat, levels = pixels.flatten(2).long(), _levels(pixels.device)
    none = torch.zeros((*flat.shape[:2], 256), dtype=torch.int32, device=pixels.device)
    counts = none.scatter_add_(2, flat, torch.ones_like(flat, dtype=torch.int32))
    last = counts.gather(2, flat.amax(dim=-1, keepdim=True))
    step = (flat.shape[-1] - last) // 255
    below = counts.cumsum(dim=-1) - counts
    spread = ((step // 2 + below) // step.clamp(min=1)).clamp(max=255)
    return _looked_up(flat, torch.where(step > 0, spread, levels).to(torch.uint8), pixels)


# What each pixel is blended with.


def _grey(pixels: Pixels) -> Int[Tensor, "n 1 S S"]:
    """Return the luma as Pillow has it, in whole numbers."""
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = pixels.int().unbind(dim=1)
    return (19595 * red).add_(green, alpha=38470).add_(blue, alpha=7471).add_(0x8000).bitwise_right_shift_(16)[:, None]


def _smooth(pixels: Pixels) -> Float[Tensor, "n C S S"]:
    """Return each pixel's mean with its eight neighbours, itself counted five times; those at the border stay."""
    side = pixels.shape[-1]
    if side < 3:
        return pixels.float()
    # One row of pixels after another, all images in one line: what is added beyond a border is overwritten.
    line = pixels.reshape(-1).to(torch.int16)
    rows = line[:-2] + line[1:-1] + line[2:]
    sums = (rows[: -2 * side] + rows[side:-side]).add_(rows[2 * side :]).add_(line[side + 1 : -side - 1], alpha=4)
    smooth = pixels.float()
    smooth.view(-1)[side + 1 : -side - 1] = sums.float().div_(13).add_(0.5).floor_()
    for border in (0, -1):
        smooth[..., border, :] = pixels[..., border, :]
        smooth[..., border] = pixels[..., border]
    return smooth


def _coloured(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Go from grey to the image."""
    return _blended(_grey(pixels), pixels, _each(values, pixels))


def _sharpened(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Go from the smoothed image to the image."""
    return _blended(_smooth(pixels), pixels, _each(values, pixels))


# What moves pixels. A pixel is where its middle is.


def _fixed(numbers: Float[Tensor, "n ..."]) -> Int[Tensor, "n ..."]:
    """Return numbers in 65,536ths."""
    return torch.floor(numbers * 65536.0 + 0.5).int()


def _moved_across(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Shear or translate along the rows: each row moves by whole pixels."""
    count, channels, side, _ = pixels.shape
    shears = torch.tensor([name.startswith("shear") for name in names])
    slope, offset = values * shears, values * ~shears * side
    at_first = 0.5 + 0.5 * slope + offset
    shifts = _fixed(slope)[:, None] * torch.arange(side) + _fixed(at_first)[:, None] >> 16
    room = int(shifts.abs().max())
    framed = F.pad(pixels, (room, room))  # black: the value of pixels outside the image
    rows = torch.arange(count * channels * side).view(count, channels, side) * framed.shape[-1]
    runs = framed.flatten().unfold(0, side, 1)  # as many pixels as a row has, from every pixel on
    return runs.index_select(0, send((rows + room + shifts[:, None]).flatten(), pixels.device)).view(pixels.shape)


def _moved_down(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Shear or translate along the columns."""
    return _moved_across(pixels.transpose(2, 3), names, values).transpose(2, 3)


def _rotated(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Rotate each image about its centre, in degrees."""
    count, channels, side, _ = pixels.shape
    each = [_turn(value, side) for value in values.tolist()]
    maps = send(_fixed(torch.tensor(each, dtype=torch.float64)), pixels.device)
    ticks = torch.arange(side, dtype=torch.int32, device=pixels.device)
    a, b, c, d, e, f = maps[:, :, None, None].unbind(dim=1)
    x = (a * ticks + (b * ticks[:, None] + c)).bitwise_right_shift_(16).clamp_(-1, side)
    y = (d * ticks + (e * ticks[:, None] + f)).bitwise_right_shift_(16).clamp_(-1, side)
    framed = F.pad(pixels, (1, 1, 1, 1))  # black: the value of pixels outside the image
    places = y.add_(1).mul_(side + 2).add_(x).add_(1).long().view(count, 1, -1).expand(-1, channels, -1)
    return framed.flatten(2).gather(2, places).view(pixels.shape)


def _turn(degrees: float, side: int) -> tuple[float, float, float, float, float, float]:
    """Return the map from places of the result to those of the image, as that of the first pixel and steps from it."""
    cosine, sine, middle = math.cos(math.radians(degrees)), -math.sin(math.radians(degrees)), side / 2
    across, down = middle - middle * (cosine + sine), middle - middle * (cosine - sine)
    return cosine, sine, 0.5 * cosine + 0.5 * sine + across, -sine, cosine, -0.5 * sine + 0.5 * cosine + down


KINDS: tuple[tuple[tuple[str, ...], Callable[[Pixels, list[str], Tensor], Pixels]], ...] = (
    (("identity",), _identity),
    (("shear_x", "translate_x"), _moved_across),
    (("shear_y", "translate_y"), _moved_down),
    (("rotate",), _rotated),
    (("autocontrast",), _stretched),
    (("equalize",), _equalized),
    (("solarize",), _solarized),
    (("posterize",), _posterized),
    (("brightness",), _brightened),
    (("contrast",), _contrasted),
    (("colour",), _coloured),
    (("sharpness",), _sharpened),
)
_KIND_OF = torch.tensor([next(place for place, (names, _) in enumerate(KINDS) if name in names) for name in NAMES])
