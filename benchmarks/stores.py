"""Photographs cached as squares of 256, or in their shape with a shorter side of 256: disk space and time.

Everything compared is timed in turn, round by round, in one process and on one thread. The photographs are generated,
in sizes and shares like ImageNet's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from propos.augment import RandomViews, plain_view, shapes_of
from propos.data import FolderSource, cache_side, clean_caches, list_caches, open_folder
from propos.runner.recipes import build_recipe
from side_by_side import compare

SIZES = [(500, 375)] * 10 + [(375, 500)] * 3 + [(500, 333)] * 4 + [(400, 400)] + [(500, 281)] + [(900, 300)]
COUNT, BATCH, ROUNDS = 240, 64, 7
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def photographs(folder: Path) -> Path:
    """Write JPEG files of smooth noise, which take as long to decode as photographs of their size."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for number in range(COUNT):
        width, height = SIZES[number % len(SIZES)]
        coarse = draw.integers(0, 256, size=(height // 8, width // 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        image.save(folder / f"{number:05d}.jpg", quality=90)
    return folder


def main() -> None:
    """Measure and print the table."""
    torch.set_num_threads(1)
    positions = np.random.default_rng(1).permutation(COUNT)[:BATCH]
    with tempfile.TemporaryDirectory() as name:
        os.environ["PROPOS_CACHE"] = str(Path(name) / "cache")
        photos = photographs(Path(name) / "photographs")

        def build(shaped: bool) -> Callable[[], object]:
            def work() -> None:
                open_folder(photos, 256, workers=1, shaped=shaped)
                clean_caches()

            return work

        print("| what | first | second | first / second | in processor time |\n|---|---|---|---|---|", flush=True)
        compare(f"decoding {COUNT} photographs", {"shapes": build(True), "squares": build(False)}, 3)
        kept = {"shapes": open_folder(photos, 256, shaped=True), "squares": open_folder(photos, 256)}
        compare(f"reading a batch of {BATCH}", {kind: _reading(each, positions) for kind, each in kept.items()}, ROUNDS)
        for size in (96, 224):
            works = {kind: _views(each, positions, size) for kind, each in kept.items()}
            compare(f"two views at {size} px", works, ROUNDS)
        works = {kind: _plain(each, positions) for kind, each in kept.items()}
        compare("the plain view at 224 px", works, ROUNDS)
        for cache in list_caches():
            print(f"\n{cache.bytes / cache.images / 1000:,.0f} kB an image on the disk")
        for kind, source in kept.items():
            batch = source.batch(positions)
            side = cache_side(build_recipe("imagenet-50").views)
            print(f"{kind}: {batch.nbytes / BATCH / 1000:,.0f} kB an image of a batch of {batch.shape} (side {side})")


def _reading(source: FolderSource, positions: np.ndarray) -> Callable[[], object]:
    return lambda: source.batch(positions)


def _views(source: FolderSource, positions: np.ndarray, size: int) -> Callable[[], object]:
    settings = build_recipe("imagenet-50").with_settings({"views.size": size}).views
    views, shapes = RandomViews(settings, MEAN, STD), shapes_of(source, positions)
    images, draws = torch.from_numpy(source.batch(positions)), torch.Generator().manual_seed(0)
    return lambda: views(images, draws, shapes.aspects, frames=shapes.frames)


def _plain(source: FolderSource, positions: np.ndarray) -> Callable[[], object]:
    images, shapes = torch.from_numpy(source.batch(positions)), shapes_of(source, positions)
    return lambda: plain_view(images, 224, MEAN, STD, "centre", shapes)


if __name__ == "__main__":
    main()
