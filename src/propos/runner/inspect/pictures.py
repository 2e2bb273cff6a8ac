"""A picture of images and random views of each."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

from propos.augment import RandomViews, plain_view, shapes_of
from propos.config import Config
from propos.data import Source, evenly_spaced
from propos.methods.seeds import generator
from propos.runs import write_atomically

ROWS, PAIRS, TILE, GAP = 8, 4, 96, 4


def draw_views_of(source: Source, config: Config, path: Path) -> None:
    """Draw a few images in the first column and random views of them in the others."""
    assert config.pixels.mean is not None
    assert config.pixels.std is not None
    positions = evenly_spaced(len(source), ROWS)
    images = torch.from_numpy(source.batch(positions))
    shapes = shapes_of(source, positions)
    views = RandomViews(config.views, config.pixels.mean, config.pixels.std)
    size, plain = config.views.size, config.views.plain
    columns = [plain_view(images, size, config.pixels.mean, config.pixels.std, plain, shapes)]
    for pair in range(PAIRS):
        columns += views(images, generator(config.seed, "inspect", pair), shapes.aspects, frames=shapes.frames)
    mean, std = (torch.tensor(values)[:, None, None] for values in (config.pixels.mean, config.pixels.std))
    tiles = (torch.stack(columns, dim=1) * std + mean).clamp(0, 1)
    pixels = (255 * tiles).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    sheet = Image.new("RGB", (len(columns) * (TILE + GAP) + 2 * GAP, len(positions) * (TILE + GAP) + GAP), "white")
    for row, line in enumerate(pixels):
        for column, tile in enumerate(line):
            picture = Image.fromarray(tile[..., 0] if tile.shape[-1] == 1 else tile).resize(
                (TILE, TILE), Image.Resampling.NEAREST
            )
            # A wider gap separates the images from their views.
            sheet.paste(picture, (GAP + column * (TILE + GAP) + (GAP if column else 0), GAP + row * (TILE + GAP)))
    write_atomically(path, lambda file: sheet.save(file, "PNG"))
