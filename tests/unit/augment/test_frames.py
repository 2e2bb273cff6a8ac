"""Views of images that keep their shape: each fills a part of the batch's tensor, upright ones lying on their side."""

import numpy as np
import pytest
import torch
from PIL import Image

from propos.augment import Frames, RandomViews, Shapes, plain_view
from propos.augment.frames import centre_box
from propos.augment.resample import resample
from propos.config import ViewSettings

SIZES = [(60, 40), (40, 60), (90, 30), (30, 90), (50, 50)]  # width and height as seen
BOX = (0.2, 0.1, 0.5, 0.8)
BLACK, ONE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def images(photos):
    """Return images of several shapes as they are seen."""
    return [photos(1, 3, height, width)[0] for width, height in SIZES]


def laid_out(images, padding=0):
    """Return the images in one tensor, lying, and their shapes."""
    lying = [image.mT if image.shape[1] > image.shape[2] else image for image in images]
    height, width = (max(each.shape[axis] for each in lying) for axis in (1, 2))
    batch = torch.full((len(images), 3, height, width), padding, dtype=torch.uint8)
    for place, image in enumerate(lying):
        batch[place, :, : image.shape[1], : image.shape[2]] = image
    rows, columns = (torch.tensor([each.shape[axis] for each in lying]) for axis in (1, 2))
    aspects = torch.tensor([image.shape[2] / image.shape[1] for image in images])
    return batch, Shapes(aspects, Frames(rows, columns, aspects < 1))


def pillow(image, box, size, mirrored=False):
    """Resize a box of every channel in Pillow's floating-point mode, to pixels in [0, 1]."""
    _, height, width = image.shape
    left, top, across, down = box
    edges = (left * width, top * height, (left + across) * width, (top + down) * height)
    edges = tuple(min(edge, limit) for edge, limit in zip(edges, (width, height) * 2, strict=True))
    channels = [Image.fromarray(channel.astype(np.float32)) for channel in image.numpy()]
    made = np.stack([np.asarray(c.resize((size, size), Image.Resampling.BILINEAR, box=edges)) for c in channels]) / 255
    return made[..., ::-1] if mirrored else made


@pytest.mark.parametrize("size", [16, 48])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_box_of_each_is_resized_as_pillow_does_with_the_image_as_seen(images, size, mirrored):
    batch, shapes = laid_out(images, padding=200)
    box = torch.tensor(BOX).expand(1, len(images), 4)
    flip = torch.full((1, len(images)), mirrored)
    ours = resample(batch, box, flip, size, shapes.frames)[0]
    theirs = np.stack([pillow(image, BOX, size, mirrored) for image in images])
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_what_no_image_fills_is_never_seen(images):
    settings = ViewSettings(size=24, keep="shapes")
    made = []
    for padding in (0, 255):
        batch, shapes = laid_out(images, padding)
        views = RandomViews(settings, BLACK, ONE)(
            batch, torch.Generator().manual_seed(0), shapes.aspects, frames=shapes.frames
        )
        made.append(torch.stack(views))
    assert torch.equal(*made)


def test_a_share_of_a_batch_has_the_views_it_has_in_the_whole(images):
    batch, shapes = laid_out(images)
    views = RandomViews(ViewSettings(size=24, keep="shapes"), BLACK, ONE)
    whole = views(batch, torch.Generator().manual_seed(3), shapes.aspects, frames=shapes.frames)
    part = slice(1, 4)
    some = views(
        batch[part],
        torch.Generator().manual_seed(3),
        shapes.aspects,
        (len(batch), part),
        shapes.frames.of(part),
    )
    for mine, all_of_them in zip(some, whole, strict=True):
        torch.testing.assert_close(mine, all_of_them[part])


def test_the_whole_of_each_is_squashed_to_the_square(images):
    batch, shapes = laid_out(images)
    ours = plain_view(batch, 20, BLACK, ONE, "whole", shapes)
    np.testing.assert_allclose(ours, np.stack([pillow(image, (0, 0, 1, 1), 20) for image in images]), atol=2e-5)


@pytest.mark.parametrize(
    ("width", "height", "left", "top"), [(341, 256, 58, 16), (256, 341, 16, 58), (256, 256, 16, 16)]
)
def test_the_middle_of_an_image_of_256_is_its_pixels(photos, width, height, left, top):
    """Torchvision's Resize(256) leaves such an image alone; CenterCrop(224) cuts at round((341 − 224) / 2) = 58."""
    (image,) = photos(1, 3, height, width)
    batch, shapes = laid_out([image])
    ours = plain_view(batch, 224, BLACK, ONE, "centre", shapes)[0]
    torch.testing.assert_close(ours, image[:, top : top + 224, left : left + 224] / 255, atol=1e-5, rtol=0)


def test_the_middle_of_smaller_images_is_what_resizing_and_cutting_leaves(photos):
    """64 px become 256, whose middle 224 are the box from 4 to 60."""
    images = photos(2, 3, 64, 64)
    ours = plain_view(images, 224, BLACK, ONE, "centre")
    for mine, image in zip(ours, images, strict=True):
        np.testing.assert_allclose(mine, pillow(image, (4 / 64, 4 / 64, 56 / 64, 56 / 64), 224), atol=2e-5)


def test_the_middle_of_squashed_images_is_that_of_their_true_shape():
    box = centre_box(224, torch.tensor([4 / 3, 3 / 4, 2.0]))
    expected = [
        [58 / 341, 16 / 256, 224 / 341, 224 / 256],
        [16 / 256, 58 / 341, 224 / 256, 224 / 341],
        [144 / 512, 16 / 256, 224 / 512, 224 / 256],
    ]
    torch.testing.assert_close(box, torch.tensor(expected))


def test_the_middle_of_images_of_the_usual_shorter_side_is_cut_out_unchanged(photos):
    # Of a side of 59 and a square of 28 the cut begins at 15.5, rounded to the even 16.
    seen = [photos(1, 3, height, width)[0] for width, height in [(43, 32), (32, 59), (32, 32), (44, 32)]]
    corners = [(2, 8), (16, 2), (2, 2), (2, 8)]
    batch, shapes = laid_out(seen)
    views = plain_view(batch, 28, BLACK, ONE, "centre", shapes)
    for view, image, (top, left) in zip(views, seen, corners, strict=True):
        assert torch.equal(view, image[:, top : top + 28, left : left + 28] / 255)
    # As it is next to an image that has to be resized, when all are resampled.
    batch, shapes = laid_out([*seen, photos(1, 3, 20, 30)[0]])
    assert torch.allclose(plain_view(batch, 28, BLACK, ONE, "centre", shapes)[:4], views, atol=1e-4)
