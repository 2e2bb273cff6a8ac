"""Estimates of a run's duration make up data for a few images only, however many there are."""

import numpy as np
import pytest

from helpers.allocations import Allocations
from helpers.pretrained import pictures, random_weights
from helpers.small import CPU
from propos.data import Selection
from propos.runner import Origin, Request, plan
from propos.training import estimate_seconds

IMAGES = 200_000


@pytest.mark.full
@pytest.mark.parametrize("settings", [{}, {"start.learns": "last", "train.epochs": 1}])
def test_an_estimate_for_many_images_allocates_what_one_for_a_few_does(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    pictures(tmp_path / "photos")
    start = Origin(weights=random_weights(tmp_path / "weights.pth"))
    with plan(Request(source=tmp_path / "photos", clusters=3, origin=start, settings=settings), "cpu") as decision:
        few = estimate_seconds(decision.config, decision.source, CPU)
        # The same pictures again and again.
        many = Selection(decision.source, np.arange(IMAGES) % len(decision.source))
        with Allocations() as made:
            seconds = estimate_seconds(decision.config, many, CPU)
    assert max(made.values) < IMAGES * 1280 / 4  # a quarter of all images' features
    assert seconds > 100 * few  # it is for all of them all the same
