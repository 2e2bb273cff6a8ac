"""The operations of strong views, each on many images at once: the pixels that Pillow makes of them one by one.

Images are uint8. What changes a value by itself is a table of 256 values for each image and channel, whatever the
operation; what moves pixels is an affine map for each image, nearest pixel, black outside, in Pillow's fixed-point
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from propos.transfer import send

Pixels = UInt8[Tensor, "n C S S"]
Tables = UInt8[Tensor, "n C 256"]
Counts = Int[Tensor, "n C 256"]

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


def operate_each_(pixels: Pixels, operation: Int[Tensor, " n"], values: Float[Tensor, " n"]) -> None:
    """Apply to each image its own operation, by its place in NAMES, and value, in place; the choices lie on the host.

    Images of one kind of operation pass together: a few calls for many images are what makes it fast.
    """
    for names, make in KINDS:
        chosen = torch.isin(operation, torch.tensor([NAMES.index(name) for name in names])).nonzero()[:, 0]
        if len(chosen):
            places = send(chosen, pixels.device)
            made = make(pixels.index_select(0, places), [NAMES[each] for each in operation[chosen]], values[chosen])
            pixels.index_copy_(0, places, made)


def _blended(from_: Tensor, to: Tensor, share: Float[Tensor, "n ..."]) -> UInt8[Tensor, "n ..."]:
    """Go so far from one to the other, cut to whole numbers, as Pillow does."""
    start = from_.float()
    return (start + share * (to.float() - start)).to(torch.uint8)


# Tables.


def _looked_up(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Look each value up in the table of its image and channel."""
    tables = torch.empty((*pixels.shape[:2], 256), dtype=torch.uint8, device=pixels.device)
    for name in set(names):
        own = torch.tensor([place for place, other in enumerate(names) if other == name])
        places = send(own, pixels.device)
        value = send(values[own].float(), pixels.device)[:, None, None]
        tables.index_copy_(0, places, TABLES[name](pixels.index_select(0, places), value))
    return tables.gather(2, pixels.flatten(2).long()).view(pixels.shape)


def _levels(device: torch.device) -> Int[Tensor, " 256"]:
    return torch.arange(256, device=device)


def _counts(pixels: Pixels) -> Counts:
    flat = pixels.flatten(2).long()
    none = torch.zeros((*flat.shape[:2], 256), dtype=torch.int32, device=pixels.device)
    return none.scatter_add_(2, flat, torch.ones_like(flat, dtype=torch.int32))


def _highest(counts: Counts) -> Int[Tensor, "n C 1"]:
    return 255 - (counts.flip(-1) > 0).int().argmax(dim=-1, keepdim=True)


def _autocontrast(pixels: Pixels, values: Tensor) -> Tables:
    """Stretch each channel from its darkest and brightest value to the whole range."""
    counts, levels = _counts(pixels), _levels(pixels.device)
    lowest, highest = (counts > 0).int().argmax(dim=-1, keepdim=True), _highest(counts)
    scale = 255.0 / (highest - lowest).clamp(min=1).double()
    stretched = (levels * scale - lowest * scale).clamp(0, 255).trunc()
    return torch.where(highest > lowest, stretched, levels.double()).to(torch.uint8)


def _equalize(pixels: Pixels, values: Tensor) -> Tables:
    """Spread each channel's values so that each range of them is as frequent as any other."""
    counts, levels = _counts(pixels), _levels(pixels.device)
    last = counts.gather(2, _highest(counts))
    step = (counts.sum(dim=-1, keepdim=True) - last) // 255
    below = counts.cumsum(dim=-1) - counts
    spread = ((step // 2 + below) // step.clamp(min=1)).clamp(max=255)
    return torch.where(step > 0, spread, levels).to(torch.uint8)


def _solarize(pixels: Pixels, values: Float[Tensor, "n 1 1"]) -> Tables:
    """Invert what is as bright as the value, or brighter."""
    levels = _levels(pixels.device)
    return _all_channels(torch.where(levels < values, levels, 255 - levels), pixels)


def _posterize(pixels: Pixels, values: Float[Tensor, "n 1 1"]) -> Tables:
    """Keep so many bits of each value."""
    dropped = (8 - values.int()).clamp(min=0)
    return _all_channels(_levels(pixels.device).int() >> dropped << dropped, pixels)


def _brightness(pixels: Pixels, values: Float[Tensor, "n 1 1"]) -> Tables:
    """Go from black to the image."""
    levels = _levels(pixels.device)
    return _all_channels(_blended(torch.zeros_like(levels), levels, values), pixels)


def _contrast(pixels: Pixels, values: Float[Tensor, "n 1 1"]) -> Tables:
    """Go from the image's mean grey to the image."""
    mean = (_grey(pixels).flatten(2).double().mean(dim=-1, keepdim=True) + 0.5).trunc()
    return _all_channels(_blended(mean, _levels(pixels.device), values), pixels)


def _all_channels(table: Tensor, pixels: Pixels) -> Tables:
    return table.to(torch.uint8).expand(-1, pixels.shape[1], 256)


TABLES: dict[str, Callable[[Pixels, Tensor], Tables]] = {
    "autocontrast": _autocontrast,
    "equalize": _equalize,
    "solarize": _solarize,
    "posterize": _posterize,
    "brightness": _brightness,
    "contrast": _contrast,
}


# What each pixel is blended with.


def _grey(pixels: Pixels) -> Int[Tensor, "n 1 S S"]:
    """Return the luma as Pillow has it, in whole numbers."""
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = pixels.int().unbind(dim=1)
    return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16)[:, None]


def _smooth(pixels: Pixels) -> Pixels:
    """Return each pixel's mean with its eight neighbours, itself counted five times; those at the border stay."""
    if pixels.shape[-1] < 3:
        return pixels
    whole = pixels.to(torch.int16)
    rows = whole[..., :-2, :] + whole[..., 1:-1, :] + whole[..., 2:, :]
    sums = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4 * whole[..., 1:-1, 1:-1]
    smooth = pixels.clone()
    smooth[..., 1:-1, 1:-1] = (sums.float() / 13 + 0.5).to(torch.uint8)
    return smooth


def _coloured(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Go from grey to the image."""
    return _blended(_grey(pixels), pixels, send(values.float(), pixels.device)[:, None, None, None])


def _sharpened(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Go from the smoothed image to the image."""
    return _blended(_smooth(pixels), pixels, send(values.float(), pixels.device)[:, None, None, None])


# Maps.

MOVING = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def _fixed(names: list[str], values: Float[Tensor, " n"], side: int) -> Int[Tensor, "n 6"]:
    """Return each image's map from places of the result to those of the image, in 65,536ths of a pixel."""
    each = [_map(name, value, side) for name, value in zip(names, values.tolist(), strict=True)]
    maps = torch.tensor(each, dtype=torch.float64)
    across, down = maps[:, :3], maps[:, 3:]
    middles = torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64)  # a pixel is where its middle is
    at_first = torch.stack([across @ middles, down @ middles], dim=1)
    coefficients = torch.cat([across[:, :2], at_first[:, :1], down[:, :2], at_first[:, 1:]], dim=1)
    return torch.floor(coefficients * 65536.0 + 0.5).int()


def _map(name: str, value: float, side: int) -> tuple[float, float, float, float, float, float]:
    if name == "rotate":
        cosine, sine, middle = math.cos(math.radians(value)), -math.sin(math.radians(value)), side / 2
        across, down = middle - middle * (cosine + sine), middle - middle * (cosine - sine)
        return cosine, sine, across, -sine, cosine, down
    across, down = (value if name.endswith(axis) else 0.0 for axis in ("_x", "_y"))
    if name.startswith("shear"):
        return 1.0, across, 0.0, down, 1.0, 0.0
    return 1.0, 0.0, across * side, 0.0, 1.0, down * side


def _moved(pixels: Pixels, names: list[str], values: Float[Tensor, " n"]) -> Pixels:
    """Move the pixels of each image by its map."""
    count, channels, side, _ = pixels.shape
    maps = send(_fixed(names, values, side), pixels.device)
    ticks = torch.arange(side, dtype=torch.int32, device=pixels.device)
    a, b, c, d, e, f = maps[:, :, None, None].unbind(dim=1)
    x = (a * ticks + b * ticks[:, None] + c) >> 16
    y = (d * ticks + e * ticks[:, None] + f) >> 16
    inside = (x >= 0) & (x < side) & (y >= 0) & (y < side)
    places = torch.where(inside, y * side + x, 0).long().view(count, 1, -1).expand(-1, channels, -1)
    moved = pixels.flatten(2).gather(2, places).view(pixels.shape)
    return moved * inside[:, None]


KINDS: tuple[tuple[tuple[str, ...], Callable[[Pixels, list[str], Tensor], Pixels]], ...] = (
    (MOVING, _moved),
    (tuple(TABLES), _looked_up),
    (("colour",), _coloured),
    (("sharpness",), _sharpened),
)
