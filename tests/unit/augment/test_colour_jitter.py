"""Changes of colour in a random order, each clipped, against Pillow, colorsys and plain numpy."""

import colorsys
from itertools import permutations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance

from propos.augment import RandomViews, draw_views
from propos.augment.colour import jitter
from propos.augment.colour_jitter import jitter_in_turn, shift_hue
from propos.config import ViewSettings

LUMA = np.array([0.299, 0.587, 0.114])
FACTORS = {"brightness": 1.4, "contrast": 0.6, "saturation": 1.4}
NAMES = ("brightness", "contrast", "saturation", "hue")


def shifted(pixels, turns):
    """Shift the hue of every pixel, one at a time."""
    flat = pixels.reshape(3, -1).T
    made = [colorsys.hsv_to_rgb((hue + turns) % 1, *rest) for hue, *rest in (colorsys.rgb_to_hsv(*rgb) for rgb in flat)]
    return np.array(made).T.reshape(pixels.shape)


def one(name, pixels, amount):
    """Apply one change as torchvision defines it."""
    grey = np.tensordot(LUMA, pixels, 1)
    if name == "hue":
        return shifted(pixels, amount)
    other = {"brightness": 0.0, "contrast": grey.mean(), "saturation": grey}[name]
    return np.clip(amount * pixels + (1 - amount) * other, 0, 1)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_every_order_is_the_changes_one_after_the_other(photos, chosen, order):
    image = photos(1, 3, 6, 6).double().numpy()[0] / 255
    amounts = {**FACTORS, "hue": 0.1}
    expected = image
    for place in range(4):
        name = NAMES[order.index(place)]
        expected = one(name, expected, amounts[name])
    draw = chosen(order=torch.tensor(order), **amounts)
    ours = jitter_in_turn(torch.from_numpy(image).float()[None, None], draw)[0, 0]
    np.testing.assert_allclose(ours, expected, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "enhancer"),
    [("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast), ("saturation", ImageEnhance.Color)],
)
@pytest.mark.parametrize("factor", [0.6, 1.4])
def test_each_factor_does_what_pillows_enhancer_does(photos, chosen, name, enhancer, factor):
    image = photos(1, 3, 24, 24)[0]
    theirs = np.asarray(enhancer(Image.fromarray(image.permute(1, 2, 0).numpy())).enhance(factor)) / 255
    draw = chosen(order=torch.arange(4), **{name: factor})
    ours = jitter_in_turn(image.float()[None, None] / 255, draw)[0, 0].permute(1, 2, 0)
    np.testing.assert_allclose(ours, theirs, atol=2.1 / 255)


@pytest.mark.parametrize("turns", [-0.5, -0.1, 0.0, 0.07, 0.1, 0.5])
def test_hue_is_shifted_as_colorsys_does(photos, turns):
    pixels = photos(1, 3, 12, 12).double().reshape(1, 3, -1) / 255
    pixels[0, :, :4] = torch.tensor([[0.5, 1, 0, 0.3], [0.5, 0, 0, 0.3], [0.5, 0, 0, 0.7]])  # grey, red, black, blue
    ours = shift_hue(pixels.float(), torch.tensor([turns]))
    np.testing.assert_allclose(ours[0], shifted(pixels[0].numpy(), turns), atol=2e-6)


def test_views_that_are_not_changed_stay_as_they_are(photos, chosen):
    images = photos(3, 3, 16, 16).float() / 255
    ours = jitter_in_turn(images[None], chosen(3, order=torch.tensor([2, 0, 3, 1])))[0]
    torch.testing.assert_close(ours, images, atol=1e-6, rtol=0)


def test_grey_comes_last_and_one_channel_has_no_colour(photos, chosen):
    images = photos(2, 3, 16, 16).float() / 255
    ours = jitter_in_turn(images[None], chosen(2, order=torch.arange(4), grey=True))[0]
    luma = torch.einsum("c,bchw->bhw", torch.tensor(LUMA, dtype=torch.float32), images)
    torch.testing.assert_close(ours, luma[:, None].expand(2, 3, 16, 16))
    alone = images[:, :1]
    draw = chosen(2, order=torch.arange(4), saturation=0.2, hue=0.3, brightness=0.5)
    torch.testing.assert_close(jitter_in_turn(alone[None], draw)[0], 0.5 * alone)


def test_orders_are_permutations_each_as_often_and_change_no_other_draw():
    plain, ordered = (
        draw_views(ViewSettings(colours=colours), 6000, 1.0, torch.Generator().manual_seed(0))
        for colours in ("at-once", "in-turn")
    )
    for name in ("box", "flip", "brightness", "contrast", "saturation", "hue", "grey"):
        assert torch.equal(getattr(plain, name), getattr(ordered, name))
    assert torch.equal(ordered.order.sort(dim=-1).values, torch.arange(4).expand(2, 6000, 4))
    _, counts = ordered.order.flatten(0, 1).unique(dim=0, return_counts=True)
    # 24 orders in 12,000 draws: 500 each, with a standard deviation of 22.
    assert len(counts) == 24
    assert (counts - 500).abs().max() < 110


def test_where_nothing_is_clipped_and_hue_stays_both_ways_agree(photos, chosen):
    images = 0.3 + 0.4 * photos(2, 3, 16, 16).float() / 255
    draw = chosen(2, order=torch.arange(4), brightness=0.9, saturation=1.2, contrast=0.8)
    torch.testing.assert_close(jitter_in_turn(images[None], draw), jitter(images[None], draw), atol=1e-6, rtol=0)


def test_the_settings_choose_how_views_are_coloured(photos):
    images = photos(8, 3, 16, 16)
    views = [
        RandomViews(ViewSettings(size=16, colours=colours), (0.0,) * 3, (1.0,) * 3)(
            images, torch.Generator().manual_seed(1)
        )
        for colours in ("at-once", "in-turn")
    ]
    difference = (views[0][0] - views[1][0]).abs().mean()
    assert 1e-3 < difference < 0.1
