"""Tests of which flips and turns preserve the kind of an image."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from propos.augment import measure_invariance
from propos.augment.invariance import Change, Invariance
from propos.data import find_source
from propos.data.arrays import ArraySource


def source_of(images):
    return ArraySource(images.astype(np.uint8)[..., None], None, "made up")


def things(count, turned_about=lambda draw: False):
    """Return boxes of four kinds, each at a place of its own and mirrored where a function draws so."""
    draw = np.random.default_rng(0)
    images = np.zeros((count, 12, 12))
    for number, image in enumerate(images):
        kind, size = number % 4, draw.integers(3, 5)
        image[3 * (kind // 2) : 3 * (kind // 2) + size, 1 + kind : 1 + kind + size] = draw.integers(150, 250)
        image += draw.normal(0, 5, image.shape).clip(0, 20)
        if turned_about(draw):
            image[:] = image[:, ::-1].copy()
    return source_of(images)


def test_written_digits_are_not_what_they_were_in_the_mirror():
    kept = measure_invariance(source_of(load_digits().images * 15))
    assert kept.mirrored.stays < 0.4
    assert kept.mirrored.farther > 1.5
    gentle = {"views.crop_scale": (0.6, 1.0), "views.rotation": 15.0}
    assert kept.settings(channels=1) == {"views.flip": 0.0, "views.turns": 1, **gentle}
    assert kept.settings(channels=3) == {"views.flip": 0.0, "views.turns": 1}
    assert str(kept).startswith("horizontal flips disabled: only ")


def test_things_that_face_one_way_are_not_mirrored_and_those_that_face_both_are():
    assert measure_invariance(things(400)).settings(channels=3) == {"views.flip": 0.0, "views.turns": 1}
    both = measure_invariance(things(400, lambda draw: draw.random() < 0.5))
    assert both.mirrored.farther == pytest.approx(1.0, abs=0.05)
    assert both.settings(channels=1) == {"views.flip": 0.5, "views.turns": 1}
    assert str(both).startswith("horizontal flips enabled: ")


def test_noise_has_no_upside():
    noise = np.random.default_rng(0).normal(128, 40, (300, 8, 8)).clip(0, 255)
    kept = measure_invariance(source_of(noise))
    assert kept.mirrored.farther == pytest.approx(1.0, abs=0.1)
    assert kept.turned.farther == pytest.approx(1.0, abs=0.1)
    assert kept.flip == 0.5


def test_what_is_found_is_the_same_each_time_and_asks_for_enough_images():
    images = load_digits().images * 15
    assert measure_invariance(source_of(images[:300])) == measure_invariance(source_of(images[:300]))
    assert measure_invariance(source_of(images[:99])) is None
    assert measure_invariance(source_of(images[:100])).flip == 0.0


def test_images_of_one_colour_are_the_same_in_the_mirror():
    kept = measure_invariance(source_of(np.repeat(np.arange(200), 64).reshape(200, 8, 8)))
    assert kept.mirrored.stays == 1.0
    assert kept.flip == 0.5


FOREIGN, SEEN = Change(0.2, 2.0), Change(0.9, 1.0)


@pytest.mark.parametrize(
    ("mirrored", "upside_down", "turned", "flip", "turns"),
    [
        (FOREIGN, SEEN, SEEN, 0.0, 1),
        (Change(0.64, 1.11), FOREIGN, FOREIGN, 0.0, 1),
        (Change(0.66, 1.5), FOREIGN, FOREIGN, 0.5, 1),  # other clothes, but clothes
        (Change(0.1, 1.09), FOREIGN, FOREIGN, 0.5, 1),  # cars to the left and cars to the right
        (SEEN, Change(0.7, 1.05), SEEN, 0.5, 1),  # a photograph on its head lies among others
        (SEEN, SEEN, FOREIGN, 0.5, 2),
        (SEEN, SEEN, SEEN, 0.5, 4),
    ],
)
def test_what_is_shown_follows_from_what_is_kept(mirrored, upside_down, turned, flip, turns):
    assert Invariance(mirrored, upside_down, turned).settings(channels=3) == {"views.flip": flip, "views.turns": turns}


@pytest.mark.real_data("fashion-mnist", "cifar-10-batches-py")
def test_clothes_and_photographs_may_be_mirrored_and_stand_upright(data_root):
    for name in ("fashion-mnist:test", "cifar-10:test"):
        kept = measure_invariance(find_source(name, data=data_root).open(32))
        assert kept.settings(channels=1) == {"views.flip": 0.5, "views.turns": 1}
