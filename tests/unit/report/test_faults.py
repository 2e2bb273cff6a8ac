"""Faults of single images: made on purpose in a set of good ones, each is found, and no good image is."""

import numpy as np
import pytest
from PIL import Image, ImageFilter

from propos.data import from_array, open_folder
from propos.review.report.faults import find_faults, measure

GOOD = 40


def photograph(rng, width=160, height=120):
    """Return an image with structure of all sizes, as photographs have, and its own light."""
    parts = [
        np.asarray(
            Image.fromarray(rng.integers(0, 256, (side, side, 3), np.uint8)).resize((width, height), Image.BICUBIC)
        ).astype(float)
        for side in (3, 6, 12, 24, 48, 96)
    ]
    mixed = sum(part / 2**place for place, part in enumerate(parts)) / sum(0.5**place for place in range(6))
    light = rng.uniform(0.7, 1.3)
    return Image.fromarray(np.clip(mixed * light + rng.normal(0, 3, mixed.shape), 0, 255).astype(np.uint8))


def screenshot(rng):
    pixels = np.full((120, 160, 3), 245, np.uint8)
    for top in range(10, 110, 12):
        pixels[top : top + 3, 10 : rng.integers(60, 120)] = 20
    return Image.fromarray(pixels)


@pytest.fixture
def faulty(tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "photos"
    folder.mkdir()
    for number in range(GOOD):
        photograph(rng).save(folder / f"good-{number:02d}.png")
    photograph(rng).point(lambda value: value // 6).save(folder / "dark.png")
    photograph(rng).point(lambda value: 225 + value // 10).save(folder / "bright.png")
    photograph(rng).filter(ImageFilter.GaussianBlur(4)).save(folder / "blurred.png")
    Image.new("RGB", (160, 120), (3, 2, 4)).save(folder / "black.png")
    screenshot(rng).save(folder / "flat.png")
    photograph(rng).convert("L").convert("RGB").save(folder / "grey.png")
    photograph(rng, 400, 60).save(folder / "aspect.png")
    photograph(rng, 28, 21).save(folder / "tiny.png")
    return open_folder(folder, 96)


def test_each_fault_is_found_and_no_good_image_has_one(faulty):
    order = np.arange(len(faulty))
    measures = np.stack([measure(image) for image in faulty.batch(order)])
    names = faulty.image_names()
    found = find_faults(faulty, order, measures, np.ones(len(faulty), bool))
    assert {kind: [names[row] for row in rows] for kind, rows in found.items()} == {
        "black": ["black.png"],
        "dark": ["dark.png"],
        "bright": ["bright.png"],
        "blurred": ["blurred.png"],
        "flat": ["flat.png"],
        "grey": ["grey.png"],
        "aspect": ["aspect.png"],
        "tiny": ["tiny.png"],
    }
    junk = np.array([name != "dark.png" for name in names])
    assert "dark" not in find_faults(faulty, order, measures, junk)


def test_a_set_of_dark_images_has_no_dark_ones():
    rng = np.random.default_rng(0)
    dark = np.stack([measure(rng.integers(0, 60, (3, 32, 32), np.uint8)) for _ in range(20)])
    assert (dark[:, 0] < 0.35).all()
    source = type("Source", (), {"height": 96, "width": 96})()
    assert find_faults(source, np.arange(20), dark, np.ones(20, bool)) == {}


def test_measures_are_those_of_a_checkerboard_and_of_one_colour():
    board = np.tile(np.array([[0, 255], [255, 0]], np.uint8), (8, 8))[None]
    light, dimmest, sharpness, equal, colour = measure(board)
    assert (light, dimmest, equal, colour) == (1.0, 0.0, 0.0, 0.0)
    # The Laplacian of a checkerboard is ±8 times the distance from the mean: a variance 64 times as large, within 14².
    assert sharpness == pytest.approx(np.log10(16 / 0.25), abs=0.01)
    red = np.zeros((3, 16, 16), np.uint8)
    red[0, :8] = 51  # half of the image: a fifth of white
    assert measure(red)[4] == pytest.approx(0.1)
    assert measure(np.full((1, 16, 16), 51, np.uint8))[[0, 1, 3]].tolist() == pytest.approx([0.2, 0.2, 1.0])


@pytest.mark.parametrize(("repeats", "found"), [(1, {}), (4, {"flat": [0]})])
def test_small_images_are_neither_blurred_nor_screenshots(repeats, found):
    images = np.random.default_rng(0).integers(0, 256, (40, 1, 8, 8), np.uint8)
    images[0] = 128
    images[0, :, :, 3] = 255
    large = np.kron(images, np.ones((repeats, repeats), np.uint8)) if repeats > 1 else images
    noise = np.random.default_rng(1).integers(0, 9, large[1:].shape, np.uint8)
    large[1:] = large[1:] // 2 + noise
    measures = np.stack([measure(image) for image in large])
    source = from_array(large[:, 0])
    faults = find_faults(source, np.arange(40), measures, np.ones(40, bool))
    assert {kind: rows for kind, rows in faults.items() if kind in ("flat", "blurred")} == found
