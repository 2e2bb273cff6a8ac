"""Strong views of a batch compared with the same views made by Pillow one by one, on one core."""

from __future__ import annotations

import argparse

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps

from propos.augment import StrongViews
from propos.augment.operations import NAMES
from propos.augment.strong import StrongDraw, draw_strong
from propos.config import StrongSettings, ViewSettings
from side_by_side import compare, verdict

AFFINE = Image.Transform.AFFINE
BATCH = 256
TARGET = 0.2  # of Pillow's time


def pillow_operation(name: str, image: Image.Image, value: float) -> Image.Image:
    """Apply one operation as everybody's RandAugment does."""
    side = image.size[0]
    match name:
        case "autocontrast":
            return ImageOps.autocontrast(image)
        case "equalize":
            return ImageOps.equalize(image)
        case "rotate":
            return image.rotate(value)
        case "solarize":
            return ImageOps.solarize(image, value)  # type: ignore[arg-type]  # as it compares
        case "posterize":
            return ImageOps.posterize(image, int(value))
        case "colour":
            return ImageEnhance.Color(image).enhance(value)
        case "contrast":
            return ImageEnhance.Contrast(image).enhance(value)
        case "brightness":
            return ImageEnhance.Brightness(image).enhance(value)
        case "sharpness":
            return ImageEnhance.Sharpness(image).enhance(value)
        case "shear_x":
            return image.transform(image.size, AFFINE, (1, value, 0, 0, 1, 0))
        case "shear_y":
            return image.transform(image.size, AFFINE, (1, 0, 0, value, 1, 0))
        case "translate_x":
            return image.transform(image.size, AFFINE, (1, 0, value * side, 0, 1, 0))
        case "translate_y":
            return image.transform(image.size, AFFINE, (1, 0, 0, 0, 1, value * side))
    return image


def pillow_views(images: np.ndarray, draw: StrongDraw) -> torch.Tensor:
    """Make the same views one by one: Pillow's operations, a tensor, normalised, a square of zeros."""
    mean, std, views = torch.full((3, 1, 1), 0.5), torch.full((3, 1, 1), 0.25), []
    for place, array in enumerate(images):
        image = Image.fromarray(array)
        if draw.flip[place]:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        for operation, value in zip(draw.operation[place].tolist(), draw.value[place].tolist(), strict=True):
            image = pillow_operation(NAMES[operation], image, value)
        view = torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255).sub_(mean).div_(std)
        top, bottom, left, right = draw.cut[place].clamp(min=0).tolist()
        view[:, top:bottom, left:right] = 0
        views.append(view)
    return torch.stack(views)


def main() -> None:
    """Time both in turn at the sizes of the published recipes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print("| views of 256 images | ours | one by one | ratio | of processor time |\n|---|---|---|---|---|")
    for side in (32, 96):
        # Smooth pictures with some noise: what photographs are like.
        rng = np.random.default_rng(0)
        coarse = rng.integers(0, 256, size=(BATCH, 6, 6, 3), dtype=np.uint8)
        images = np.stack([np.asarray(Image.fromarray(one).resize((side, side))) for one in coarse])
        images = np.clip(images + rng.normal(0, 8, images.shape), 0, 255).astype(np.uint8)
        settings, strong = ViewSettings(size=side), StrongSettings()
        views = StrongViews(settings, strong, (0.5,) * 3, (0.25,) * 3)
        draw = draw_strong(settings, strong, BATCH, torch.Generator().manual_seed(0))
        batch = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        far = (views.make(batch, draw) - pillow_views(images, draw)).abs().max().item() * 255 * 0.25
        works = {
            "ours": lambda views=views, batch=batch, draw=draw: views.make(batch, draw),
            "Pillow": lambda images=images, draw=draw: pillow_views(images, draw),
        }
        found = compare(f"{side}×{side}, at most {far:.0f} levels apart", works, rounds)
        verdict(found, f"at most {TARGET}", found.processor_ratio <= TARGET)


if __name__ == "__main__":
    main()
