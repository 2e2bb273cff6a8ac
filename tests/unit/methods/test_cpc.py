"""CPC: its patches, what a prediction may read, and the contrast of rows by hand and by plain loops."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.quick import quick_cases
from helpers.steps import learner_of, losses_of, step_of
from propos.common.errors import InputError
from propos.methods.cpc import Patchwise, RowsAbove, partly_hidden, predictive_contrast

LABELS = torch.arange(200) % 10
RNG = np.random.default_rng(0)


def contrast_by_loops(predictions, keys, together):
    """Return the loss, one prediction after another."""
    images, ahead, _, grid, _ = predictions.shape
    total = 0.0
    for below in range(1, ahead + 1):
        losses = []
        for image in range(images):
            first = image // together * together
            others = range(first, min(first + together, images))
            for row in range(grid - below):
                for column in range(grid):
                    p = predictions[image, below - 1, :, row, column]
                    products = [p @ keys[j, :, r, c] for j in others for r in range(grid) for c in range(grid)]
                    own = p @ keys[image, :, row + below, column]
                    losses.append(np.log(np.sum(np.exp(products))) - own)
        total += np.mean(losses)
    return total


@pytest.mark.parametrize("together", quick_cases(3, rest=[2, 5]))  # of five images
def test_the_contrast_equals_plain_loops_in_value_and_gradient(together):
    predictions, keys = RNG.normal(size=(5, 2, 3, 3, 3)), RNG.normal(size=(5, 3, 3, 3))
    of = torch.tensor
    oracle.check(
        lambda x: predictive_contrast(x, of(keys), together),
        lambda x: contrast_by_loops(x, keys, together),
        predictions,
    )
    oracle.check(
        lambda x: predictive_contrast(of(predictions), x, together),
        lambda x: contrast_by_loops(predictions, x, together),
        keys,
    )


def test_predictions_that_know_nothing_guess_among_all_patches():
    loss = predictive_contrast(torch.zeros(4, 2, 3, 3, 3), torch.randn(4, 3, 3, 3), 2)
    assert float(loss) == pytest.approx(2 * math.log(2 * 9))  # for either row, among the patches of two images


def test_patches_overlap_by_half_row_by_row():
    rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    cut = Patchwise(torch.nn.Identity(), grid=3, size=8, least=4).cut((8 * rows + columns)[None, None])
    assert cut.shape == (1, 9, 1, 4, 4)
    assert cut[0, :, 0, 0, 0].tolist() == [0, 2, 4, 16, 18, 20, 32, 34, 36]
    assert torch.equal(cut[0, 0, 0, :, 2:], cut[0, 1, 0, :, :2])


def test_patches_of_small_images_are_enlarged_until_they_fit_the_backbone():
    network = learner_of("cpc").method.online.backbone  # digits of 8 × 8, a backbone that wants 4
    assert network.cut(torch.randn(2, 1, 8, 8)).shape == (2, 25, 1, 4, 4)


def test_a_colour_image_is_seen_in_grey():
    colours = torch.randn(2, 3, 8, 8)
    network = Patchwise(torch.nn.Identity(), grid=3, size=8, least=4)
    torch.testing.assert_close(network.cut(colours), network.cut(colours.mean(dim=1, keepdim=True)))


def test_of_a_patch_a_square_is_kept_in_one_of_its_corners():
    kept = partly_hidden(torch.ones(50, 9, 1, 16, 16), torch.randn(50, 18, generator=torch.Generator().manual_seed(0)))
    assert kept.sum(dim=(2, 3, 4)).eq(15 * 15).all()  # 60 of 64 pixels
    places = kept[:, :, 0, :2, :2].sum(dim=(2, 3))  # 4, 2, 2 or 1 of its first pixels
    assert set(places.unique().tolist()) == {1, 2, 4}


def test_no_prediction_reads_a_row_below():
    torch.manual_seed(0)
    network, latents = RowsAbove(6, 4), torch.randn(1, 6, 5, 5, requires_grad=True)
    network(latents)[0, :, 2].sum().backward()
    read = latents.grad.abs().sum(dim=(0, 1, 3))
    assert read[:3].gt(0).all()
    assert not read[3:].any()


def test_an_embedding_is_the_mean_of_the_patches_features():
    method = learner_of("cpc").method.eval()
    images = torch.randn(3, 1, 8, 8)
    with torch.no_grad():
        one_by_one = [method.online.backbone.backbone(patch) for patch in method.online.backbone.cut(images).unbind(1)]
        torch.testing.assert_close(method.online(images), torch.stack(one_by_one).mean(dim=0))


def test_a_step_returns_the_contrast_of_its_rows():
    learner = learner_of("cpc")
    losses = losses_of(learner, *step_of(learner, LABELS))
    # Three rows, each told among the 25 patches of 16 images and of the 8 that are left.
    guess = 3 * (16 * math.log(16 * 25) + 8 * math.log(8 * 25)) / 24
    assert losses == {"rows": pytest.approx(guess, rel=0.1)}


def test_rows_that_the_grid_does_not_have_are_refused():
    with pytest.raises(InputError, match=r"cpc.ahead = 5: a grid of 5 has fewer rows below the first"):
        learner_of("cpc", cpc__ahead=5)
