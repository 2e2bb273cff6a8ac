import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from propos.augment import draw_views
from propos.config import ViewSettings

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)
MANY = 10_000


def draw(settings=None, batch=MANY, aspect=1.0, seed=0):
    return draw_views(settings or ViewSettings(), batch, aspect, torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def natural():
    return draw()


@PROPERTY
@given(
    scale=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)).map(sorted).map(tuple),
    ratio=st.tuples(st.floats(0.2, 5), st.floats(0.2, 5)).map(sorted).map(tuple),
    aspect=st.floats(0.1, 10),
    seed=st.integers(0, 1000),
)
def test_boxes_stay_inside_the_image_with_an_allowed_ratio(scale, ratio, aspect, seed):
    box = draw(ViewSettings(crop_scale=scale, crop_ratio=ratio), 64, aspect, seed).box
    left, top, width, height = box.unbind(-1)
    assert box.min() >= 0
    assert (left + width).max() <= 1 + 1e-6
    assert (top + height).max() <= 1 + 1e-6
    in_pixels = width / height * aspect
    assert in_pixels.min() >= ratio[0] * (1 - 1e-4)
    assert in_pixels.max() <= ratio[1] * (1 + 1e-4)


@pytest.mark.parametrize("aspect", [0.8, 1.0, 1.25])
def test_area_ratio_and_place_are_uniform_where_every_box_fits(aspect):
    # At most half the area at 4/3 by an aspect of 1.25: no side exceeds √(0.5 · 4/3 · 1.25) < 1.
    box = draw(ViewSettings(crop_scale=(0.1, 0.5)), aspect=aspect).box[0].double()
    left, top, width, height = box.unbind(-1)
    area, ratio = width * height, torch.log(width / height * aspect)
    log_ratio = math.log(4 / 3)
    assert kstest(area, "uniform", args=(0.1, 0.4)).pvalue > 0.01
    assert kstest(ratio, "uniform", args=(-log_ratio, 2 * log_ratio)).pvalue > 0.01
    assert kstest(left / (1 - width), "uniform").pvalue > 0.01
    assert kstest(top / (1 - height), "uniform").pvalue > 0.01


def test_boxes_that_do_not_fit_are_drawn_again(natural):
    rng = np.random.default_rng(0)
    area = rng.uniform(0.08, 1, size=100_000)
    ratio = np.exp(rng.uniform(-math.log(4 / 3), math.log(4 / 3), size=100_000))
    fitting = area[(area * ratio <= 1) & (area / ratio <= 1)]
    ours = (natural.box[..., 2] * natural.box[..., 3]).flatten()
    assert ours.mean().item() == pytest.approx(fitting.mean(), abs=0.01)
    assert ours.std().item() == pytest.approx(fitting.std(), abs=0.01)


@pytest.mark.parametrize(
    ("aspect", "box"),
    [
        # The whole of a square image; else the whole of the shorter side and 4/3 of that of the longer, centred.
        (1.0, (0.0, 0.0, 1.0, 1.0)),
        (4.0, (1 / 3, 0.0, 1 / 3, 1.0)),
        (0.25, (0.0, 1 / 3, 1.0, 1 / 3)),
    ],
)
def test_where_no_box_fits_the_largest_central_one_is_taken(aspect, box):
    # A box of the whole area fits only if its ratio is exactly the image's, which is never drawn.
    drawn = draw(ViewSettings(crop_scale=(1.0, 1.0)), 50, aspect).box
    torch.testing.assert_close(drawn, torch.tensor(box).expand(2, 50, 4), atol=1e-6, rtol=0)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_flip_grey_and_jitter_have_the_set_probabilities(share):
    drawn = draw(ViewSettings(flip=share, grey=share, jitter=share))
    for happened in (drawn.flip, drawn.grey, drawn.brightness != 1):
        assert happened.float().mean().item() == pytest.approx(share, abs=0.0 if share in (0, 1) else 0.02)


def test_jitter_takes_all_of_an_images_colours_or_none(natural):
    jittered = natural.brightness != 1
    for name in ("contrast", "saturation"):
        assert torch.equal(getattr(natural, name) != 1, jittered)
    assert torch.equal(natural.hue != 0, jittered)


def test_colour_factors_and_angles_are_uniform_within_their_strength():
    strengths = {"brightness": 0.4, "contrast": 0.2, "saturation": 0.7}
    drawn = draw(ViewSettings(jitter=1.0, hue=0.1, rotation=30.0, **strengths))
    for name, strength in strengths.items():
        assert kstest(getattr(drawn, name)[0].double(), "uniform", args=(1 - strength, 2 * strength)).pvalue > 0.01
    assert kstest(drawn.hue[0].double(), "uniform", args=(-0.1, 0.2)).pvalue > 0.01
    assert kstest(drawn.angle[0].double(), "uniform", args=(-math.pi / 6, math.pi / 3)).pvalue > 0.01


def test_the_choices_are_independent_of_each_other_and_between_views():
    drawn = draw(ViewSettings(jitter=1.0, rotation=10.0, turns=4, blur=0.5, solarise=0.5, colours="in-turn"))
    choices = [value.float() for name, value in vars(drawn).items() if name not in ("box", "order")]
    choices += [drawn.order[..., 0].float()]
    area = drawn.box[..., 2] * drawn.box[..., 3]
    of_both_views = torch.stack([*choices, area]).flatten(0, 1)
    assert torch.corrcoef(of_both_views).fill_diagonal_(0).abs().max() < 0.05


def test_the_same_seed_draws_the_same_views_and_another_others():
    first, again, other = draw(batch=16), draw(batch=16), draw(batch=16, seed=1)
    for name, value in vars(first).items():
        assert torch.equal(value, getattr(again, name))
    assert not torch.equal(first.box, other.box)
    assert not torch.equal(first.brightness, other.brightness)


def test_natural_views_are_the_papers(natural):
    settings = ViewSettings(preset="natural")
    assert (settings.crop_scale, settings.crop_ratio) == ((0.08, 1.0), (0.75, 4 / 3))
    assert (settings.flip, settings.jitter, settings.grey) == (0.5, 0.8, 0.2)
    assert (settings.brightness, settings.contrast, settings.saturation, settings.hue) == (0.4, 0.4, 0.4, 0.1)
    assert not natural.angle.any()


def test_views_of_digits_never_flip_and_turn_a_little():
    drawn = draw(ViewSettings(preset="digits"))
    assert not drawn.flip.any()
    assert 10 < math.degrees(drawn.angle.abs().max()) <= 15


@pytest.mark.parametrize("preset", ["greyscale", "digits"])
def test_views_of_grey_images_have_no_hue_saturation_or_grey(preset):
    drawn = draw(ViewSettings(preset=preset))
    assert not drawn.hue.any()
    assert not drawn.grey.any()
    assert (drawn.saturation == 1).all()
    assert (drawn.brightness != 1).any()


def test_each_image_may_have_an_aspect_of_its_own():
    settings = ViewSettings(preset="natural", crop_ratio=(1.0, 1.0), crop_scale=(0.1, 0.1))
    aspects = torch.tensor([1.0, 2.0, 0.5])
    box = draw_views(settings, 3, aspects, torch.Generator().manual_seed(0)).box
    # A square crop of a squashed image twice as wide as high is half as wide as high there; areas stay.
    torch.testing.assert_close(box[..., 2] / box[..., 3], (1 / aspects).expand(2, 3))
    torch.testing.assert_close(box[..., 2] * box[..., 3], torch.full((2, 3), 0.1))


def test_aspects_that_no_crop_fits_fall_back_to_the_largest_central_one():
    settings = ViewSettings(preset="natural", crop_ratio=(1.0, 1.0), crop_scale=(1.0, 1.0))
    box = draw_views(settings, 2, torch.tensor([4.0, 0.5]), torch.Generator().manual_seed(0)).box[0]
    torch.testing.assert_close(box, torch.tensor([[0.375, 0.0, 0.25, 1.0], [0.0, 0.25, 1.0, 0.5]]))


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.1), (0.0, 0.2), (0.5, 0.0), (0.3, 1.0)])
def test_each_view_is_blurred_and_solarised_with_its_own_probability(first, second):
    drawn = draw(ViewSettings(blur=(first, second), solarise=(second, first)))
    for happened, shares in ((drawn.blur > 0, (first, second)), (drawn.solarise, (second, first))):
        for view, share in zip(happened, shares, strict=True):
            assert view.float().mean().item() == pytest.approx(share, abs=0.0 if share in (0, 1) else 0.02)


def test_the_width_of_a_blur_is_uniform_from_a_tenth_of_a_pixel_to_two():
    sigma = draw(ViewSettings(blur=0.5)).blur
    assert kstest(sigma[sigma > 0].double(), "uniform", args=(0.1, 1.9)).pvalue > 0.01


def test_blur_and_solarisation_change_nothing_else_that_is_drawn():
    plain, affected = draw(batch=64), draw(ViewSettings(blur=0.5, solarise=(0.0, 0.2)), batch=64)
    for name in set(vars(plain)) - {"blur", "solarise"}:
        assert torch.equal(getattr(plain, name), getattr(affected, name))
    # Each is the same with and without the other.
    assert torch.equal(draw(ViewSettings(blur=0.5), batch=64).blur, affected.blur)
    assert torch.equal(draw(ViewSettings(solarise=(0.0, 0.2)), batch=64).solarise, affected.solarise)


def test_without_blur_and_solarisation_nothing_is_drawn_for_them():
    generator, same = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    draw_views(ViewSettings(), 8, 1.0, generator)
    torch.rand((8, 2, 8), generator=same)
    torch.rand((4, 10, 2, 8), generator=same)
    assert torch.equal(generator.get_state(), same.get_state())


@pytest.mark.parametrize(("turns", "positions"), [(1, [0]), (2, [0, 2]), (4, [0, 1, 2, 3])])
def test_a_view_is_in_each_of_its_positions_as_often(turns, positions):
    drawn, counts = draw(ViewSettings(turns=turns)).turns.unique(return_counts=True)
    assert drawn.tolist() == positions
    assert counts.tolist() == pytest.approx([2 * MANY / turns] * turns, rel=0.05)


def test_turns_change_nothing_else_that_is_drawn(natural):
    turned = draw(ViewSettings(turns=4))
    assert all(torch.equal(value, getattr(natural, name)) for name, value in vars(turned).items() if name != "turns")
