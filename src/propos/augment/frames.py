"""Frames: the part of a batch's tensor that each image fills, when images keep their shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.data import Source
from propos.distributed.transfer import send_together

USUAL_CROP = 7 / 8  # of the shorter side, which the usual test transform leaves


@dataclass(frozen=True)
class Frames:
    """The rows and columns that each image fills, from the first on, and which images lie on their side."""

    rows: Int[Tensor, " B"]
    columns: Int[Tensor, " B"]
    lying: Bool[Tensor, " B"]

    def to(self, device: torch.device) -> Frames:
        """Move them to the device of the images."""
        return Frames(*send_together([self.rows, self.columns, self.lying], device))

    def of(self, part: slice) -> Frames:
        """Return those of some of the images."""
        return Frames(self.rows[part], self.columns[part], self.lying[part])


@dataclass(frozen=True)
class Shapes:
    """The shapes of images within a batch's tensor: true width over height, and frames."""

    aspects: Float[Tensor, " B"] | None = None
    frames: Frames | None = None


def shapes_of(source: Source, positions: Int[np.ndarray, " B"]) -> Shapes:
    """Return the shapes of a source's images."""
    if source.aspects is None:
        return Shapes()
    aspects = torch.from_numpy(source.aspects[positions]).float()
    if source.frames is None:
        return Shapes(aspects)
    rows, columns = torch.from_numpy(source.frames[positions].astype(np.int64)).unbind(dim=1)
    return Shapes(aspects, Frames(rows, columns, aspects < 1))


def centre_box(size: int, ratio: Float[Tensor, " B"], crop: float = USUAL_CROP) -> Float[Tensor, "B 4"]:
    """Return the box, in fractions of the image, that is left of images by the usual test transform.

    That is: the shorter side becomes the size over `crop` (256 for 224), and a square of the size is cut out of the
    middle, at a whole pixel. `ratio` is each image's width over its height.
    """
    short = round(size / crop)
    long = torch.floor(short * torch.maximum(ratio, 1 / ratio) + 1e-3)
    across_long = torch.round((long - size) / 2) / long, size / long
    across_short = torch.full_like(long, round((short - size) / 2) / short), torch.full_like(long, size / short)
    wide = ratio >= 1
    left, width = (torch.where(wide, a, b) for a, b in zip(across_long, across_short, strict=True))
    top, height = (torch.where(wide, b, a) for a, b in zip(across_long, across_short, strict=True))
    return torch.stack([left, top, width, height], dim=-1)
