import numpy as np
import pytest
import torch
from PIL import Image

from propos.augment import RandomViews, draw_views, plain_view
from propos.augment.colour import jitter
from propos.augment.effects import blur_, solarise_
from propos.augment.resample import resample, resample_rotated
from propos.config import ViewSettings

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def still(size, aspect=1.0, **changed):
    """Settings that leave nothing to chance."""
    nothing = {"crop_scale": (1.0, 1.0), "crop_ratio": (aspect, aspect), "flip": 0.0, "jitter": 0.0, "grey": 0.0}
    return ViewSettings(size=size, **{**nothing, **changed})


def normalised(pixels):
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    return (pixels - mean) / std


def views(settings, images, seed=0):
    channels = images.shape[1]
    return RandomViews(settings, MEAN[:channels], STD[:channels])(images, seeded(seed))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 32), (40, 24, 32), (48, 64, 20)])
def test_views_with_nothing_random_are_the_plain_view(photos, channels, height, width, size):
    images = photos(5, channels, height, width)
    plain = plain_view(images, size, MEAN[:channels], STD[:channels])
    for view in views(still(size, width / height), images):
        torch.testing.assert_close(view, plain, atol=1e-4, rtol=0)


def test_views_always_flipped_are_the_mirrored_plain_view(photos):
    images = photos(5, 3, 32, 32)
    first, second = views(still(32, flip=1.0), images)
    mirrored = plain_view(images, 32, MEAN, STD).flip(-1)
    torch.testing.assert_close(first, mirrored, atol=1e-5, rtol=0)
    torch.testing.assert_close(second, mirrored, atol=1e-5, rtol=0)


@pytest.mark.parametrize("rotation", [0.0, 20.0])
@pytest.mark.parametrize(("batch", "height", "width"), [(6, 24, 36), (24, 160, 150)])  # in one part, in three
def test_views_apply_what_was_drawn(photos, rotation, batch, height, width):
    images = 255 - photos(batch, 3, height, width) // 3  # light, so that some are clipped
    settings = ViewSettings(size=16, rotation=rotation)
    draw = draw_views(settings, batch, width / height, seeded(3))
    if rotation:
        cut = resample_rotated(images, draw.box, draw.flip, draw.angle, 16)
    else:
        cut = resample(images, draw.box, draw.flip, 16)
    made = torch.stack(views(settings, images, seed=3))
    torch.testing.assert_close(made, normalised(jitter(cut, draw)))
    assert jitter(cut, draw).max() == 1  # clipped before it is normalised


@pytest.mark.parametrize("preset", ["natural", "greyscale", "digits"])
def test_the_same_seed_makes_the_same_views_and_another_others(photos, preset):
    images = photos(4, 1 if preset != "natural" else 3, 16, 16)
    settings = ViewSettings(preset=preset, size=16)
    first, again, other = (views(settings, images, seed) for seed in (0, 0, 1))
    for place in (0, 1):
        assert torch.equal(first[place], again[place])
        assert not torch.equal(first[place], other[place])


def test_the_two_views_of_an_image_differ(photos):
    first, second = views(ViewSettings(size=16), photos(8, 3, 16, 16))
    assert ((first - second).abs().amax(dim=(1, 2, 3)) > 0.1).all()


@pytest.mark.parametrize("preset", ["natural", "digits"])
@pytest.mark.parametrize("channels", [1, 3])
def test_one_image_alone_has_two_contiguous_float_views(photos, preset, channels):
    for view in views(ViewSettings(preset=preset, size=12), photos(1, channels, 20, 16)):
        assert view.shape == (1, channels, 12, 12)
        assert view.dtype == torch.float32
        assert view.is_contiguous()


def test_views_do_not_change_the_images(photos):
    images = photos(4, 3, 16, 16)
    before = images.clone()
    views(ViewSettings(size=16), images)
    plain_view(images, 16, MEAN, STD)
    assert torch.equal(images, before)


@pytest.mark.parametrize("size", [24, 80])
def test_the_plain_view_is_pillows_antialiased_resize(photos, size):
    images = photos(2, 1, 60, 48)
    pictures = [Image.fromarray(image[0].numpy().astype(np.float32)) for image in images]
    theirs = np.stack([np.asarray(p.resize((size, size), Image.Resampling.BILINEAR)) for p in pictures]) / 255
    ours = plain_view(images, size, (0.3,), (0.5,))[:, 0]
    np.testing.assert_allclose(ours, (theirs - 0.3) / 0.5, atol=1e-4)


def test_the_plain_view_at_the_images_own_size_only_normalises(photos):
    images = photos(3, 3, 16, 16)
    mean, std = np.array(MEAN).reshape(3, 1, 1), np.array(STD).reshape(3, 1, 1)
    np.testing.assert_allclose(plain_view(images, 16, MEAN, STD), (images.numpy() / 255 - mean) / std, atol=1e-5)


@pytest.mark.parametrize("rotation", [0.0, 20.0])
def test_views_do_not_depend_on_how_the_images_lie_in_memory(photos, rotation):
    images = photos(4, 3, 20, 16)
    settings = ViewSettings(size=12, rotation=rotation)
    straight = views(settings, images)
    channels_last = views(settings, images.contiguous(memory_format=torch.channels_last))
    for one, other in zip(straight, channels_last, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


@pytest.mark.parametrize("batch", [6, 80])  # in one part, in several
def test_views_are_blurred_then_solarised_after_their_colours_and_before_they_are_normalised(photos, batch):
    images = photos(batch, 3, 96, 96)
    settings = ViewSettings(size=64, blur=(1.0, 0.1), solarise=(0.0, 0.5))
    draw = draw_views(settings, batch, 1.0, seeded(3))
    expected = jitter(resample(images, draw.box, draw.flip, 64), draw)
    blur_(expected, draw.blur)
    solarise_(expected, draw.solarise)
    torch.testing.assert_close(torch.stack(views(settings, images, seed=3)), normalised(expected))


OFF = {"crop": {"crop_scale": (1.0, 1.0), "crop_ratio": (1.0, 1.0)}} | {
    name: {name: 0.0} for name in ("flip", "rotation", "jitter", "grey", "blur", "solarise")
}
ON = {"rotation": 15.0, "blur": (1.0, 0.5), "solarise": (0.5, 1.0)}


@pytest.mark.parametrize("subset", [*([name] for name in OFF), ["crop", "jitter"], ["flip", "rotation", "blur"]])
def test_any_subset_of_augmentations_can_be_switched_off(photos, subset):
    images = photos(16, 3, 32, 32)
    off = {key: value for name in subset for key, value in OFF[name].items()}
    settings = ViewSettings(size=32, **{**ON, **off})
    first, again = (torch.stack(views(settings, images)) for _ in range(2))
    assert torch.equal(first, again)
    assert torch.isfinite(first).all()
    assert not torch.equal(first, torch.stack(views(ViewSettings(size=32, **ON), images)))


def test_with_every_augmentation_off_a_view_is_the_image(photos):
    images = photos(4, 3, 32, 32)
    settings = ViewSettings(size=32, **{key: value for off in OFF.values() for key, value in off.items()})
    for view in views(settings, images):
        torch.testing.assert_close(view, plain_view(images, 32, MEAN, STD), atol=1e-5, rtol=0)


def test_a_view_is_turned_as_pillow_turns_it(photos):
    images = photos(30, 3, 16, 16)
    settings = still(16, turns=4)
    drawn = draw_views(settings, 30, 1.0, seeded(3)).turns
    assert len(drawn.unique()) == 4
    for view, turns in zip(views(settings, images, seed=3), drawn, strict=True):
        for shown, image, quarters in zip(view, images, turns.tolist(), strict=True):
            picture = Image.fromarray(image.permute(1, 2, 0).numpy()).rotate(90 * quarters)
            expected = torch.from_numpy(np.array(picture)).permute(2, 0, 1) / 255
            assert torch.allclose(shown, normalised(expected), atol=1e-5)
