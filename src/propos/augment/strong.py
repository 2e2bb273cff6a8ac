"""Strong views: the whole image, mirrored or not, some operations drawn for each image, and a square cut out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from propos.augment.frames import Shapes
from propos.augment.operations import NAMES, RANGES, apply_operations
from propos.augment.views import PART, normalisation_tensors, plain_view
from propos.config import StrongSettings, ViewSettings
from propos.distributed.transfer import send


@dataclass(frozen=True)
class StrongDraw:
    """The random choices behind a strong view of each of B images."""

    flip: Bool[Tensor, " B"]
    operation: Int[Tensor, "B R"]  # by its place in NAMES
    value: Float[Tensor, "B R"]  # within the operation's range
    cut: Int[Tensor, "B 4"]  # first and last row and column but one of the square cut out

    def of(self, part: slice) -> StrongDraw:
        """Return the choices for some of the images."""
        return StrongDraw(**{name: value[part] for name, value in vars(self).items()})


def draw_strong(views: ViewSettings, strong: StrongSettings, batch: int, generator: torch.Generator) -> StrongDraw:
    """Draw the random choices for a strong view of each of `batch` images."""
    flip = torch.rand(batch, generator=generator) < views.flip
    operation = torch.randint(len(NAMES), (batch, strong.operations), generator=generator)
    uniform = torch.rand((batch, strong.operations), generator=generator, dtype=torch.float64)
    lowest, highest = torch.tensor(list(RANGES.values()), dtype=torch.float64)[operation].unbind(dim=-1)
    largest = int(strong.cutout * views.size)
    side = torch.randint(1, max(2, largest), (batch, 1), generator=generator) * (largest > 0)
    middle = torch.randint(views.size, (batch, 2), generator=generator)
    first, last = middle - side // 2, middle + side // 2
    cut = torch.stack([first[:, 0], last[:, 0], first[:, 1], last[:, 1]], dim=1)
    return StrongDraw(flip, operation, lowest + (highest - lowest) * uniform, cut)


class StrongViews:
    """A strong view of every image of a batch; what is cut out is grey as the mean of all pixels."""

    def __init__(
        self, views: ViewSettings, strong: StrongSettings, mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        self.views, self.strong = views, strong
        self.mean, self.std = mean, std

    def __call__(
        self,
        images: UInt8[Tensor, "B C H W"],
        generator: torch.Generator,
        share: tuple[int, slice] | None = None,
        shapes: Shapes | None = None,
    ) -> Float[Tensor, "B C S S"]:
        """Return a view of each image, normalised.

        With `share`, the images are some of a batch of so many, for all of which is drawn. `shapes` are theirs.
        """
        whole, mine = share or (len(images), slice(len(images)))
        draw = draw_strong(self.views, self.strong, whole, generator).of(mine)
        return self.make(self._whole(images, shapes), draw)

    def make(self, pixels: UInt8[Tensor, "B C S S"], draw: StrongDraw) -> Float[Tensor, "B C S S"]:
        """Return the view that was drawn for each of these squares, on a CPU a part of them at a time."""
        values = pixels[:1].numel()
        per_part = max(1, 4 * PART // max(1, values)) if pixels.device.type == "cpu" else max(1, len(pixels))
        made = torch.empty(pixels.shape, dtype=torch.float32, device=pixels.device)
        for start in range(0, len(pixels), per_part):
            part = slice(start, start + per_part)
            self._make(made[part], pixels[part], draw.of(part))
        return made

    def _make(self, made: Float[Tensor, "b C S S"], pixels: UInt8[Tensor, "b C S S"], draw: StrongDraw) -> None:
        """Write the view of each image to where it is made."""
        begins = torch.arange(len(pixels)) + len(pixels) * draw.flip
        pixels = apply_operations(torch.cat([pixels, pixels.flip(-1)]), begins, draw.operation, draw.value)
        mean, std = normalisation_tensors(self.mean, self.std, pixels.device)
        left = _left(send(draw.cut, pixels.device), pixels.shape[-1])
        made.copy_(pixels).div_(255).sub_(mean).div_(std).mul_(left)

    def _whole(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes | None) -> UInt8[Tensor, "B C S S"]:
        """Return the images as they are embedded, not normalised."""
        size, channels = self.views.size, images.shape[1]
        if images.shape[-2:] == (size, size) and shapes in (None, Shapes()):
            return images
        seen = plain_view(images, size, (0.0,) * channels, (1.0,) * channels, self.views.plain, shapes)
        return seen.mul_(255).round_().to(torch.uint8)


def _left(cut: Int[Tensor, "B 4"], side: int) -> Float[Tensor, "B 1 S S"]:
    """Return 0 for the pixels that are cut out, and 1 for the others."""
    ticks = torch.arange(side, device=cut.device)
    top, bottom, left, right = cut[:, :, None].unbind(dim=1)
    rows, columns = (ticks >= top) & (ticks < bottom), (ticks >= left) & (ticks < right)
    return 1 - (rows[:, None, :, None].float() * columns[:, None, None])
