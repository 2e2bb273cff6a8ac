import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from scipy.ndimage import gaussian_filter1d

from propos.augment.effects import blur_, solarise_


def stacked(photos, views, batch, channels, side):
    images = photos(views * batch, channels, side, side)
    return (images / 255).view(views, batch, channels, side, side)


@pytest.mark.parametrize("channels", [1, 3])
# A kernel of a tenth of the side, odd; small views take one of three.
@pytest.mark.parametrize(("side", "reach"), [(8, 1), (32, 1), (96, 4), (224, 11)])
def test_blur_is_scipys_gaussian_filter_with_each_views_own_width(photos, channels, side, reach):
    views = stacked(photos, 2, 2, channels, side)
    sigma = torch.tensor([[0.1, 0.7], [1.3, 2.0]])
    expected = views.double().numpy()
    for place in np.ndindex(2, 2):
        for axis in (1, 2):
            width = float(sigma[place])
            expected[place] = gaussian_filter1d(expected[place], width, axis=axis, mode="mirror", radius=reach)
    blur_(views, sigma)
    np.testing.assert_allclose(views, expected, atol=1e-6)


def test_views_that_were_not_drawn_stay_as_they_are(photos):
    views = stacked(photos, 2, 3, 3, 24)
    before = views.clone()
    blur_(views, torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    changed = (views != before).flatten(2).any(dim=2)
    assert changed.tolist() == [[False, True, False], [False, False, True]]

    views = before.clone()
    solarise_(views, torch.tensor([[True, False, False], [False, False, True]]))
    changed = (views != before).flatten(2).any(dim=2)
    assert changed.tolist() == [[True, False, False], [False, False, True]]

    views = before.clone()
    blur_(views, torch.zeros(2, 3))
    solarise_(views, torch.zeros(2, 3, dtype=torch.bool))
    assert torch.equal(views, before)


@pytest.mark.parametrize("side", [1, 2, 3])
def test_the_smallest_views_can_be_blurred(side):
    views = torch.full((2, 1, 3, side, side), 0.25)
    blur_(views, torch.full((2, 1), 2.0))
    torch.testing.assert_close(views, torch.full((2, 1, 3, side, side), 0.25))


def test_solarisation_is_pillows(photos):
    images = photos(1, 3, 20, 20)
    theirs = ImageOps.solarize(Image.fromarray(images[0].permute(1, 2, 0).numpy()), threshold=128)
    views = (images / 255)[None]
    solarise_(views, torch.tensor([[True]]))
    np.testing.assert_allclose(views[0, 0], np.asarray(theirs).transpose(2, 0, 1) / 255, atol=1e-6)
