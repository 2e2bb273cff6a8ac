import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from propos.augment.colour import jitter

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)
LUMA = np.array([0.299, 0.587, 0.114])
FACTORS = [0.0, 0.6, 1.0, 1.4]


def coloured(images, draw):
    """Apply colour choices alone."""
    return jitter(images[None] / 255, draw)[0].numpy()


def luma(pixels):
    return np.einsum("c,bchw->bhw", LUMA, pixels)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize(
    ("name", "enhance"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
    ],
)
def test_each_factor_does_what_pillows_enhancer_does(photos, chosen, name, enhance, factor):
    images = photos(1, 3, 20, 24)[..., :20]
    picture = Image.fromarray(images[0].permute(1, 2, 0).numpy())
    theirs = np.asarray(enhance(picture).enhance(factor)).transpose(2, 0, 1) / 255
    # Pillow rounds to whole pixel values, the grey it blends with included.
    np.testing.assert_allclose(coloured(images, chosen(**{name: factor}))[0], theirs, atol=1.6 / 255)


@pytest.mark.parametrize("brightness", [0.7, 1.0])
def test_contrast_blends_with_the_mean_luma_of_the_brightened_view(photos, chosen, brightness):
    images = photos(4, 3, 12, 12)
    pixels = images.numpy() / 255 * brightness
    factors = np.array([0.6, 0.8, 1.0, 1.1])
    mean = luma(pixels).mean(axis=(1, 2))[:, None, None, None]
    expected = factors[:, None, None, None] * (pixels - mean) + mean
    ours = coloured(images, chosen(4, contrast=torch.from_numpy(factors), brightness=brightness))
    np.testing.assert_allclose(ours, expected.clip(0, 1), atol=1e-5)


def test_contrast_of_one_channel_blends_with_its_mean(photos, chosen):
    images = photos(2, 1, 9, 9)
    pixels = images.numpy() / 255
    mean = pixels.mean(axis=(1, 2, 3), keepdims=True)
    ours = coloured(images, chosen(2, contrast=0.5, brightness=0.9))
    np.testing.assert_allclose(ours, 0.9 * (0.5 * pixels + 0.5 * mean), atol=1e-6)


def test_one_channel_has_no_saturation_hue_or_grey(photos, chosen):
    images = photos(2, 1, 9, 9)
    ours = coloured(images, chosen(2, saturation=0.1, hue=0.3, grey=True))
    np.testing.assert_allclose(ours, images.numpy() / 255, atol=1e-6)


def test_grey_is_the_luma_in_every_channel_of_the_chosen_views(photos, chosen):
    images = photos(2, 3, 10, 10)
    ours = coloured(images, chosen(2, grey=[True, False], saturation=1.3, hue=0.1))
    pixels = images.numpy() / 255
    np.testing.assert_allclose(ours[0], np.broadcast_to(luma(pixels)[0], (3, 10, 10)), atol=1e-6)
    assert np.ptp(ours[1], axis=0).max() > 0.1


@pytest.mark.parametrize("turns", [-0.1, 0.03, 0.1, 0.25, 0.5])
def test_hue_turns_chroma_in_yiq(photos, chosen, turns):
    images = photos(1, 3, 10, 10) // 3 + 80  # away from 0 and 255, so that little is clipped
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    y, i, q = np.einsum("dc,chw->dhw", to_yiq, images[0].numpy() / 255)
    phasor = (i + 1j * q) * np.exp(2j * np.pi * turns)
    back = np.linalg.solve(to_yiq, np.stack([y, phasor.real, phasor.imag]).reshape(3, -1)).reshape(3, 10, 10)
    np.testing.assert_allclose(coloured(images, chosen(hue=turns))[0], back.clip(0, 1), atol=1e-5)


@PROPERTY
@given(hue=st.floats(-0.5, 0.5), saturation=st.floats(0, 2), level=st.integers(0, 255))
def test_hue_and_saturation_leave_grey_pixels_alone(chosen, hue, saturation, level):
    images = torch.full((1, 3, 2, 2), level, dtype=torch.uint8)
    np.testing.assert_allclose(coloured(images, chosen(hue=hue, saturation=saturation)), level / 255, atol=1e-5)


@PROPERTY
@given(hue=st.floats(-0.5, 0.5), saturation=st.floats(0, 1))
def test_hue_and_saturation_keep_the_luma(photos, chosen, hue, saturation):
    images = photos(1, 3, 6, 6) // 4 + 96  # so near grey that nothing is clipped
    ours = coloured(images, chosen(hue=hue, saturation=saturation))
    np.testing.assert_allclose(luma(ours), luma(images.numpy() / 255), atol=1e-5)


def test_a_full_turn_of_hue_changes_nothing(photos, chosen):
    images = photos(1, 3, 6, 6)
    np.testing.assert_allclose(coloured(images, chosen(hue=1.0)), images.numpy() / 255, atol=1e-5)


def test_pixels_are_clipped(chosen):
    images = torch.tensor([0, 100, 200, 255], dtype=torch.uint8).view(1, 1, 2, 2).expand(1, 3, 2, 2)
    ours = jitter(images[None] / 255, chosen(brightness=1.5))[0, 0]
    clipped = torch.tensor([0.0, 150 / 255, 1.0, 1.0]).view(1, 2, 2)
    torch.testing.assert_close(ours, clipped.expand(3, 2, 2), atol=1e-5, rtol=1e-5)


def test_every_view_of_every_image_has_its_own_colours(photos, chosen):
    images = photos(3, 3, 8, 8)
    factors = torch.tensor([0.5, 1.0, 0.8])
    together = coloured(images, chosen(3, brightness=factors))
    for place, factor in enumerate(factors.tolist()):
        alone = coloured(images[place : place + 1], chosen(brightness=factor))
        np.testing.assert_allclose(together[place], alone[0], atol=1e-6)
