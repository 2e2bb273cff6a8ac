from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.pretrained import random_weights
from propos.augment import Shapes
from propos.networks import FrozenBackbone, Whitening, read_pretrained


@pytest.fixture(scope="module")
def frozen_backbone(tmp_path_factory):
    return FrozenBackbone(read_pretrained(None, random_weights(tmp_path_factory.mktemp("weights") / "weights.pth")))


def test_a_square_of_256_is_cropped_to_its_middle_224(frozen_backbone):
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 256, 256), dtype=np.uint8)
    expected = (torch.from_numpy(image[:, :, 16:240, 16:240].astype(np.float32)) - 127) / 128
    view = frozen_backbone._view(torch.from_numpy(image), Shapes(torch.ones(1)))
    assert torch.allclose(view, expected, atol=1e-4)
    with torch.no_grad():
        features = frozen_backbone.network(expected)
    assert torch.allclose(frozen_backbone(torch.from_numpy(image), Shapes()), features, atol=1e-4)
    assert features.shape == (1, 1280)
    assert features.std() > 0


def test_only_images_that_are_not_resized_again_may_be_cut_to_their_middle(frozen_backbone, monkeypatch):
    assert (frozen_backbone.middle_of(256), frozen_backbone.middle_of(240)) == (224, 0)
    for own in ({"crop": None}, {"resample": "bicubic"}):
        network = replace(frozen_backbone.weights.network, **own)
        monkeypatch.setattr(frozen_backbone, "weights", replace(frozen_backbone.weights, network=network))
        assert frozen_backbone.middle_of(256) == 0


@pytest.mark.parametrize("wide", [True, False])
def test_the_middle_of_an_image_that_was_squashed_is_found(frozen_backbone, wide):
    # Of an image twice as wide as high the middle square is 0.875 / 2 of its width: 112 of 256 columns.
    image = torch.zeros(1, 3, 256, 256, dtype=torch.uint8)
    middle, most = slice(72 - 2, 184 + 2), slice(16 - 2, 240 + 2)
    image[:, :, most if wide else middle, middle if wide else most] = 255
    view = frozen_backbone._view(image, Shapes(torch.tensor([2.0 if wide else 0.5])))
    assert torch.allclose(view, torch.ones_like(view), atol=1e-5)  # (255 - 127) / 128
    image[:] = 255 - image
    view = frozen_backbone._view(image, Shapes(torch.tensor([1.0])))
    assert view.max() > 0.99  # the whole of it holds both


def test_grey_images_are_seen_as_grey_colours(frozen_backbone):
    grey = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 1, 64, 64), dtype=np.uint8))
    assert torch.allclose(
        frozen_backbone(grey, Shapes()), frozen_backbone(grey.expand(-1, 3, -1, -1), Shapes()), atol=1e-5
    )


def test_whitening_divides_main_directions_by_a_power_of_their_spread():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 12)) * np.linspace(3, 0.5, 12) + 2
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    spreads = np.linalg.svd(centred, compute_uv=False) / np.sqrt(300)
    whitening = Whitening(12, 5)
    whitening.fit(torch.from_numpy(features).float().split(130), 0.5)
    out = whitening(torch.from_numpy(features).float()).numpy()
    assert out.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-6)
    # Divided by the root of their spreads, directions have the root of their spreads left, and are still uncorrelated.
    assert np.cov(out.T, bias=True) == pytest.approx(np.diag(spreads[:5]), abs=1e-5)


def test_directions_without_spread_stay_zero():
    features = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0]])
    whitening = Whitening(3, 3)
    whitening.fit([features], 1.0)
    out = whitening(features)
    assert torch.equal(out[:, 2], torch.zeros(3))
    assert torch.isfinite(out).all()
