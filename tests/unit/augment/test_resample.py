import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import map_coordinates

from propos.augment.resample import resample, resample_rotated

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)
WHOLE = (0.0, 0.0, 1.0, 1.0)
# Left, top, width, height as fractions: whole, off-centre, touching two borders, a sliver.
BOXES = [WHOLE, (0.21, 0.13, 0.55, 0.62), (0.4, 0.5, 0.6, 0.5), (0.03, 0.3, 0.1, 0.65)]
SIDES = [(32, 32, 32), (24, 40, 32), (40, 24, 16), (64, 64, 24), (9, 7, 20), (50, 90, 13)]


def pillow(image, box, size):
    """Resize a box of every channel in Pillow's floating-point mode, to pixels in [0, 1]."""
    _, height, width = image.shape
    left, top, across, down = box
    edges = (left * width, top * height, (left + across) * width, (top + down) * height)
    # A box may end a rounding error past the border, which Pillow refuses.
    edges = tuple(min(edge, limit) for edge, limit in zip(edges, (width, height) * 2, strict=True))
    channels = [Image.fromarray(channel.astype(np.float32)) for channel in image.numpy()]
    bilinear = Image.Resampling.BILINEAR
    return np.stack([np.asarray(c.resize((size, size), bilinear, box=edges)) for c in channels]) / 255


def turned(image, box, flip, angle, size):
    """Interpolate linearly in every output pixel of a turned box, one channel; larger images are resized first."""
    height, width = image.shape
    left, top, across, down = np.array(box) * (width, height, width, height)
    places = (np.arange(size) + 0.5) / size - 0.5
    v, u = np.meshgrid(places * down, places * across * (-1 if flip else 1), indexing="ij")
    x = left + across / 2 + math.cos(angle) * u - math.sin(angle) * v
    y = top + down / 2 + math.sin(angle) * u + math.cos(angle) * v
    pixels = image / 255
    if max(height, width) > size:
        pixels, x, y = pillow(torch.from_numpy(image)[None], WHOLE, size)[0], x * size / width, y * size / height
    # map_coordinates puts whole numbers at pixel centres.
    return map_coordinates(pixels.astype(np.float64), [y - 0.5, x - 0.5], order=1, mode="nearest")


def boxes(*values):
    return torch.tensor(values)[None]


def flips(*values):
    return torch.tensor(values)[None]


@pytest.mark.parametrize(("height", "width", "size"), SIDES)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_box_is_resized_as_pillow_does(photos, height, width, size, channels):
    images = photos(len(BOXES), channels, height, width)
    ours = resample(images, boxes(*BOXES), torch.zeros(1, len(BOXES), dtype=torch.bool), size)[0]
    theirs = np.stack([pillow(image, box, size) for image, box in zip(images, BOXES, strict=True)])
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


@PROPERTY
@given(
    sides=st.tuples(st.integers(2, 40), st.integers(2, 40)),
    size=st.integers(1, 40),
    extent=st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)),
    place=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_any_box_of_any_image_is_resized_as_pillow_does(photos, sides, size, extent, place):
    image = photos(1, 1, *sides)
    box = ((1 - extent[0]) * place[0], (1 - extent[1]) * place[1], *extent)
    ours = resample(image, boxes(box), flips(False), size)[0, 0]
    np.testing.assert_allclose(ours, pillow(image[0], box, size), atol=5e-5)


def test_shrinking_averages_and_does_not_skip(photos):
    # One-pixel stripes shrunk four times: point samples would be 0 or 1, an average is a half.
    stripes = torch.tensor([0, 255], dtype=torch.uint8).repeat(32).expand(1, 1, 64, 64)
    shrunk = resample(stripes, boxes(WHOLE), flips(False), 16)
    assert (shrunk[..., 1:-1] - 0.5).abs().max() < 0.02


def test_the_whole_image_at_its_own_size_is_unchanged(photos):
    images = photos(3, 3, 32, 32)
    same = resample(images, boxes(WHOLE).expand(1, 3, 4), torch.zeros(1, 3, dtype=torch.bool), 32)[0]
    torch.testing.assert_close(same, images / 255, atol=1e-7, rtol=1e-6)


def test_a_flip_mirrors_left_and_right_of_the_chosen_views_only(photos):
    images = photos(2, 3, 20, 30)
    box = boxes(BOXES[1]).expand(1, 2, 4)
    straight = resample(images, box, flips(False, False), 16)[0]
    mixed = resample(images, box, flips(False, True), 16)[0]
    torch.testing.assert_close(mixed[0], straight[0])
    torch.testing.assert_close(mixed[1], straight[1].flip(-1), atol=2e-5, rtol=0)


def test_views_of_one_image_do_not_touch_each_other_or_other_images(photos):
    images = photos(3, 3, 24, 20)
    box = torch.tensor([[BOXES[0], BOXES[1], BOXES[2]], [BOXES[3], BOXES[2], BOXES[0]]])
    flip = torch.tensor([[False, True, False], [True, False, True]])
    together = resample(images, box, flip, 12)
    for view in range(2):
        for image in range(3):
            place = slice(view, view + 1), slice(image, image + 1)
            alone = resample(images[place[1]], box[place], flip[place], 12)
            torch.testing.assert_close(together[place], alone)


@pytest.mark.parametrize(("height", "width", "size"), SIDES)
@pytest.mark.parametrize("flip", [False, True])
def test_a_turned_box_is_cut_from_the_image_as_the_plain_view_shows_it(photos, height, width, size, flip):
    images = photos(len(BOXES), 1, height, width)
    angles = [0.0, 0.3, -0.7, 2.5]
    ours = resample_rotated(images, boxes(*BOXES), torch.full((1, len(BOXES)), flip), torch.tensor(angles)[None], size)[
        0, :, 0
    ]
    each = zip(images[:, 0].numpy(), BOXES, angles, strict=True)
    theirs = np.stack([turned(image, box, flip, angle, size) for image, box, angle in each])
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_a_quarter_turn_is_counterclockwise(photos):
    images = photos(2, 3, 16, 16)
    angle = torch.full((1, 2), math.pi / 2)
    ours = resample_rotated(images, boxes(WHOLE).expand(1, 2, 4), flips(False, False), angle, 16)[0]
    np.testing.assert_allclose(ours, np.rot90(images.numpy(), axes=(2, 3)) / 255, atol=1e-5)


@pytest.mark.parametrize("size", [16, 20])
def test_a_turn_by_nothing_is_the_resize_where_nothing_shrinks(photos, size):
    images = photos(4, 3, 16, 16)
    flip, still = flips(False, True, False, True), torch.zeros(1, 4)
    torch.testing.assert_close(
        resample_rotated(images, boxes(*BOXES), flip, still, size),
        resample(images, boxes(*BOXES), flip, size),
        atol=2e-5,
        rtol=0,
    )


def test_the_border_is_repeated_outside_the_image():
    white = torch.full((1, 1, 10, 10), 255, dtype=torch.uint8)
    corners = resample_rotated(white, boxes(WHOLE), flips(False), torch.tensor([[math.pi / 4]]), 10)
    torch.testing.assert_close(corners, torch.ones(1, 1, 1, 10, 10))
