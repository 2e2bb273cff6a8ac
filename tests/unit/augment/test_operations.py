"""Strong views: every operation compared with Pillow's on one image at a time, and the random choices."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from propos.augment import StrongViews
from propos.augment.operations import NAMES, RANGES, apply_operations
from propos.augment.strong import draw_strong
from propos.config import StrongSettings, ViewSettings

AFFINE = Image.Transform.AFFINE


def by_pillow(name, image, value):
    side = image.size[0]
    return {
        "identity": lambda: image,
        "autocontrast": lambda: ImageOps.autocontrast(image),
        "equalize": lambda: ImageOps.equalize(image),
        "rotate": lambda: image.rotate(value),
        "solarize": lambda: ImageOps.solarize(image, value),
        "posterize": lambda: ImageOps.posterize(image, int(value)),
        "colour": lambda: ImageEnhance.Color(image).enhance(value),
        "contrast": lambda: ImageEnhance.Contrast(image).enhance(value),
        "brightness": lambda: ImageEnhance.Brightness(image).enhance(value),
        "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(value),
        "shear_x": lambda: image.transform(image.size, AFFINE, (1, value, 0, 0, 1, 0)),
        "shear_y": lambda: image.transform(image.size, AFFINE, (1, 0, 0, value, 1, 0)),
        "translate_x": lambda: image.transform(image.size, AFFINE, (1, 0, value * side, 0, 1, 0)),
        "translate_y": lambda: image.transform(image.size, AFFINE, (1, 0, 0, 0, 1, value * side)),
    }[name]()


def operate(name, pixels, values):
    """Apply one operation to images, each with its own value."""
    operation = torch.full((len(pixels), 1), NAMES.index(name))
    return apply_operations(pixels, torch.arange(len(pixels)), operation, values[:, None])


def pictures(channels, side, count=12):
    """Return noise, dark noise, a ramp, few values, and one value alone, in turn."""
    draw = np.random.default_rng(side)
    made = draw.integers(0, 256, size=(count, side, side, channels), dtype=np.uint8)
    made[1::5] = made[1::5] // 4 + 40
    made[2::5] = np.linspace(10, 240, side)[None, :, None, None].astype(np.uint8)
    made[3::5] = made[3::5] // 100 * 100
    made[4::5] = 77
    return made


def values_of(name, count):
    lowest, highest = RANGES[name]
    return lowest + (highest - lowest) * torch.rand(count, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.parametrize(("channels", "side"), [(3, 32), (1, 8), (3, 17), (1, 28), (3, 2), (1, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_every_operation_gives_pillows_pixels(name, channels, side):
    images = pictures(channels, side)
    values = values_of(name, len(images))
    found = operate(name, torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), values)
    for image, value, ours in zip(images, values.tolist(), found, strict=True):
        theirs = by_pillow(name, Image.fromarray(image if channels == 3 else image[..., 0]), value)
        expected = np.asarray(theirs).reshape(side, side, channels).astype(int)
        assert np.abs(ours.permute(1, 2, 0).numpy().astype(int) - expected).max() <= 1


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("identity", "autocontrast", "equalize")])
def test_the_value_matters(name):
    images = torch.from_numpy(pictures(3, 32)[:1]).permute(0, 3, 1, 2)
    lowest, highest = RANGES[name]
    one, other = (
        operate(name, images, torch.tensor([value], dtype=torch.float64)) for value in (lowest, highest * 0.9)
    )
    assert not torch.equal(one, other)


def strong(size=16, flip=0.5, **settings):
    return StrongViews(ViewSettings(size=size, flip=flip), StrongSettings(**settings), (0.5,) * 3, (0.25,) * 3)


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_view_is_its_operations_one_after_the_other_then_normalised_and_cut():
    images = torch.from_numpy(pictures(3, 16, 40)).permute(0, 3, 1, 2).contiguous()
    made = strong()(images, drawn())
    draw = draw_strong(ViewSettings(size=16), StrongSettings(), 40, drawn())
    assert {*draw.operation.unique().tolist()} == set(range(len(NAMES)))
    for place in range(40):
        pixels = images[place : place + 1].flip(-1) if draw.flip[place] else images[place : place + 1]
        for operation, value in zip(draw.operation[place].tolist(), draw.value[place], strict=True):
            pixels = operate(NAMES[operation], pixels, value[None])
        expected = (pixels[0].float() / 255 - 0.5) / 0.25
        top, bottom, left, right = draw.cut[place].clamp(0, 16).tolist()
        expected[:, top:bottom, left:right] = 0
        torch.testing.assert_close(made[place], expected, rtol=0, atol=1e-6)


def test_the_largest_square_cut_out_is_as_large_as_the_settings_say():
    draw = draw_strong(ViewSettings(size=32), StrongSettings(cutout=0.5), 4000, drawn())
    sides = (draw.cut[:, 1] - draw.cut[:, 0]).unique().tolist()
    assert sides == list(range(0, 16, 2))  # halves of 1 to 15 to each side
    nothing = draw_strong(ViewSettings(size=32), StrongSettings(cutout=0.0), 100, drawn())
    assert torch.equal(nothing.cut[:, 0], nothing.cut[:, 1])


def test_without_operations_cut_and_mirror_the_view_is_the_plain_one():
    images = torch.from_numpy(pictures(3, 16)).permute(0, 3, 1, 2).contiguous()
    made = strong(flip=0.0, operations=0, cutout=0.0)(images, drawn())
    torch.testing.assert_close(made, (images.float() / 255 - 0.5) / 0.25)


def test_larger_images_are_resized_first():
    images = torch.from_numpy(pictures(3, 32)).permute(0, 3, 1, 2).contiguous()
    made = strong(flip=0.0, operations=0, cutout=0.0)(images, drawn())
    for image, view in zip(images, made, strict=True):
        theirs = Image.fromarray(image.permute(1, 2, 0).numpy()).resize((16, 16), Image.Resampling.BILINEAR)
        expected = (torch.from_numpy(np.asarray(theirs).copy()).permute(2, 0, 1) / 255 - 0.5) / 0.25
        torch.testing.assert_close(view, expected, rtol=0, atol=1.01 / 255 / 0.25)


def test_an_images_view_does_not_depend_on_the_process():
    images = torch.from_numpy(pictures(3, 16, 20)).permute(0, 3, 1, 2).contiguous()
    whole = strong()(images, drawn())
    part = strong()(images[7:15], drawn(), (20, slice(7, 15)))
    assert torch.equal(part, whole[7:15])
